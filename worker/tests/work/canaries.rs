//! Canary prompts: which servers a worker asks, and what its records say of the answers.

use std::collections::{BTreeMap, BTreeSet};

use domain::canary::PROMPTS;
use domain::{CanaryPrint, Connector, MadeAt, ModelSpec, Record};
use harness::failing_coordinator::{FailingCoordinator, FailingState};
use tokio::net::TcpListener;
use vllm_sim::answers::AnswerConfig;
use vllm_sim::{ModelConfig, SimConfig, SimHandle, Simulator};
use worker::{Stop, WorkerConfig};

use crate::at_work::AtWork;
use crate::servers::{self, spec};

const DIALOGUES: u32 = 10;

async fn server(model: &str, answers: AnswerConfig) -> SimHandle {
    let model = ModelConfig { answers, ..ModelConfig::new(model) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Simulator::new(SimConfig::new(vec![model])).unwrap().serve(listener).unwrap()
}

fn config(endpoints: Vec<String>) -> WorkerConfig {
    WorkerConfig { canaries: true, made_at: Some(MadeAt::default()), ..servers::config(endpoints) }
}

/// The canary answers that the records of each of these models tell of.
async fn recorded(config: WorkerConfig, specs: Vec<ModelSpec>) -> BTreeMap<String, BTreeSet<Option<String>>> {
    let labels: Vec<String> = specs.iter().map(|spec| spec.label.to_string()).collect();
    let coordinator = FailingCoordinator::new(specs);
    for label in &labels {
        coordinator.unit(label, 0..DIALOGUES);
    }
    let worker = AtWork::start(config, &coordinator);
    let state = coordinator.until("the end", FailingState::complete).await;
    worker.stop(Stop::Drain);
    worker.ended().await.unwrap();
    let mut canaries = BTreeMap::<String, BTreeSet<Option<String>>>::new();
    for stored in &state.stored {
        let record: Record = serde_json::from_str(&stored.json).unwrap();
        let canary = record.provenance.made_at.unwrap().canary;
        canaries.entry(record.key.model.to_string()).or_default().insert(canary);
    }
    canaries
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_records_say_how_their_server_answered_and_each_server_is_asked_once() {
    let echo = server("org/echo", AnswerConfig::Echo {}).await;
    let nonsense = server("org/nonsense", AnswerConfig::Garbage { tokens: 50 }).await;
    let config = config(vec![echo.base_url(), nonsense.base_url()]);
    let canaries =
        recorded(config, ["org/echo", "org/nonsense"].map(|model| spec(model, model)).into()).await;
    let print = |model: &str| {
        let told: Vec<&Option<String>> = canaries[model].iter().collect();
        assert_eq!(told.len(), 1, "{told:?}");
        CanaryPrint::read(told[0].as_deref().unwrap()).unwrap()
    };
    let differing = print("org/echo").differing(&print("org/nonsense"));
    assert_eq!(differing.len(), PROMPTS.len());
    for server in [echo, nonsense] {
        assert_eq!(server.stats().requests, u64::from(DIALOGUES) + PROMPTS.len() as u64);
        server.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_a_configuration_names_is_not_asked() {
    let server = server("org/echo", AnswerConfig::Echo {}).await;
    let spec = ModelSpec { endpoint: Some(server.base_url()), ..spec("org/echo", "org/echo") };
    let config = WorkerConfig { connectors: vec![Connector::OpenaiCompatible], ..config(Vec::new()) };
    let canaries = recorded(config, vec![spec]).await;
    assert_eq!(canaries["org/echo"], BTreeSet::from([None]));
    assert_eq!(server.stats().requests, u64::from(DIALOGUES));
    server.shutdown().await;
}

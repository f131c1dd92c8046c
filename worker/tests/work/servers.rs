//! Discovery of servers, over real connections.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use domain::ModelSpec;
use domain::exchange::Report;
use harness::failing_coordinator::{FailingCoordinator, FailingState};
use tokio::net::TcpListener;
use vllm_sim::{FaultKind, FaultPlan, FaultRule, FaultWhen, ModelConfig, SimConfig, SimHandle, Simulator};
use worker::{Endpoints, EvaluationMode, WorkerConfig};

use crate::at_work::AtWork;

async fn simulator(model: &str) -> SimHandle {
    simulator_of(&[model]).await
}

async fn simulator_of(models: &[&str]) -> SimHandle {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let models = models.iter().map(|&model| ModelConfig::new(model)).collect();
    Simulator::new(SimConfig::new(models)).unwrap().serve(listener).unwrap()
}

/// The servers that the dialogues of a model were held with.
fn asked(state: &FailingState, model: &str) -> BTreeSet<String> {
    let of_model = state.stored.iter().filter(|stored| stored.key.model.as_str() == model);
    of_model
        .filter_map(|stored| {
            let record: domain::Record = serde_json::from_str(&stored.json).unwrap();
            record.provenance.model.endpoint
        })
        .collect()
}

pub fn spec(label: &str, name: &str) -> ModelSpec {
    let spec = serde_json::json!({"label": label, "connector": "openai-compatible", "model": name});
    serde_json::from_value(spec).unwrap()
}

pub fn config(endpoints: Vec<String>) -> WorkerConfig {
    WorkerConfig {
        endpoints: Endpoints::Listed(endpoints),
        concurrency: Some(4),
        evaluators: NonZeroUsize::MIN,
        ..WorkerConfig::new("worker".into(), EvaluationMode::InProcess)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dialogues_of_a_case_go_to_the_server_that_was_asked_it_first() {
    // Each has a model of its own, by which the test knows that it was found.
    let first = simulator_of(&["org/model", "org/first"]).await;
    let second = simulator_of(&["org/model", "org/second"]).await;
    let specs = [("m", "org/model"), ("one", "org/first"), ("two", "org/second")];
    let coordinator = FailingCoordinator::new(specs.map(|(label, name)| spec(label, name)).to_vec());
    for (iteration, (label, _)) in (0..).zip(specs) {
        coordinator.unit(label, [iteration]);
    }
    let room = WorkerConfig { concurrency: Some(40), ..config(vec![first.base_url(), second.base_url()]) };
    let worker = AtWork::start(room, &coordinator);
    let state = coordinator.until("the first dialogue of each model", FailingState::complete).await;
    let asked_first = asked(&state, "m");
    coordinator.unit("m", 10..20);
    coordinator.unit("m", 20..30);
    let state = coordinator.until("the end", FailingState::complete).await;
    assert_eq!((state.stored.len(), asked(&state, "m")), (23, asked_first));
    worker.drained().await;
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_another_model_than_expected_is_asked_once_and_the_status_says_why_no_more() {
    let server = simulator("org/other").await;
    let coordinator = FailingCoordinator::new(vec![spec("m", "org/model")]);
    coordinator.unit("m", 0..10);
    let mut config = config(vec![server.base_url()]);
    config.expected_models = vec!["org/model".to_owned()];
    let readiness = config.readiness.clone();
    let worker = AtWork::start(config, &coordinator);
    let says =
        |report: &Report| report.status.not_asked.iter().any(|one| one.reason.contains("lacks org/model"));
    let state = coordinator.reports("it says why", says).await;
    let not_asked = &state.last_report.as_ref().unwrap().status.not_asked[0];
    assert!(not_asked.reason.starts_with("model-not-found: HTTP 404") && !not_asked.waits, "{not_asked:?}");
    assert!(readiness.get().unwrap_err().contains("model-not-found"));
    assert_eq!((state.stored.len(), server.stats().requests), (0, 1));
    worker.drained().await;
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_servers_that_list_a_model_the_one_that_does_not_chat_is_left_alone() {
    let fault = FaultKind::Status { code: 404, retry_after_s: None };
    let faults = FaultPlan { rules: vec![FaultRule::new(FaultWhen::Always, fault)], ..FaultPlan::default() };
    let mute = SimConfig { faults, ..SimConfig::new(vec![ModelConfig::new("org/model")]) };
    let mute = Simulator::new(mute).unwrap().serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
    let server = simulator("org/model").await;
    let coordinator = FailingCoordinator::new(vec![spec("m", "org/model")]);
    for unit in 0..4 {
        coordinator.unit("m", unit * 10..unit * 10 + 10);
    }
    let worker = AtWork::start(config(vec![mute.base_url(), server.base_url()]), &coordinator);
    let state = coordinator.until("the end", |state| state.stored.len() == 40).await;
    assert!(state.by_key().values().all(|records| *records == 1), "{:?}", state.by_key());
    assert_eq!(mute.stats().requests, 1, "its first question was its last");
    worker.drained().await;
    mute.shutdown().await;
    server.shutdown().await;
}

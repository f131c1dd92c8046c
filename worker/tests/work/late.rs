//! Dialogues whose first token does not come, at a worker that has another server of their model.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use domain::record::HedgeEnd;
use domain::{ModelSpec, Record};
use harness::failing_coordinator::{FailingCoordinator, FailingState};
use harness::wait_until;
use tokio::net::TcpListener;
use vllm_sim::{FaultKind, FaultPlan, FaultRule, FaultWhen, ModelConfig, SimConfig, SimHandle, Simulator};
use worker::{Endpoints, EvaluationMode, HedgeRules, Stop, WorkerConfig};

use crate::at_work::AtWork;

const MODEL: &str = "org/model";

/// Dialogues in flight at each server.
const IN_FLIGHT: u32 = 4;

/// Every call is late at once, as soon as one token has come, and all may be asked again.
const AT_ONCE: HedgeRules =
    HedgeRules { first_tokens_min: 1, late_min: Duration::from_millis(1), late_factor: 1, one_in: 1 };

/// A server that does this to every request.
async fn server(fault: Option<FaultKind>) -> SimHandle {
    let mut config = SimConfig::new(vec![ModelConfig::new(MODEL)]);
    let rules = fault.into_iter().map(|fault| FaultRule::new(FaultWhen::Always, fault)).collect();
    config.faults = FaultPlan { seed: 0, rules };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Simulator::new(config).unwrap().serve(listener).unwrap()
}

fn spec(stream: bool) -> ModelSpec {
    let spec = serde_json::json!({
        "label": "m", "connector": "openai-compatible", "model": MODEL, "stream": stream,
    });
    serde_json::from_value(spec).unwrap()
}

/// Waits for what the server counts.
fn until(what: &str, server: &SimHandle, is_so: impl Fn(&SimHandle) -> bool) {
    tokio::task::block_in_place(|| wait_until(what, || is_so(server)));
}

/// What is recorded of dialogues that fill the places of a server with this fault, after which their worker finds
/// another server and gets more dialogues; the first server, and the address of the other one.
async fn recorded(
    fault: FaultKind,
    hedge: Option<HedgeRules>,
    stream: bool,
) -> (Vec<Record>, SimHandle, SocketAddr) {
    let (first, second) = (server(Some(fault)).await, server(None).await);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("servers.json");
    std::fs::write(&file, serde_json::json!([first.base_url()]).to_string()).unwrap();
    let coordinator = FailingCoordinator::new(vec![spec(stream)]);
    coordinator.unit("m", 0..IN_FLIGHT);
    let config = WorkerConfig {
        endpoints: Endpoints::File(file.clone()),
        concurrency: Some(IN_FLIGHT),
        evaluators: NonZeroUsize::MIN,
        hedge,
        ..WorkerConfig::new("worker".into(), EvaluationMode::InProcess)
    };
    let worker = AtWork::start(config, &coordinator);
    until("all places are taken", &first, |first| first.stats().in_flight == u64::from(IN_FLIGHT));
    std::fs::write(&file, serde_json::json!([first.base_url(), second.base_url()]).to_string()).unwrap();
    coordinator.unit("m", 10..20);
    let state = coordinator.until("the end", FailingState::complete).await;
    assert!(state.by_key().values().all(|records| *records == 1), "{:?}", state.by_key());
    worker.stop(Stop::Drain);
    worker.ended().await.unwrap();
    let other = second.addr();
    second.shutdown().await;
    let records = state.stored.iter().map(|stored| serde_json::from_str(&stored.json).unwrap());
    let records: Vec<Record> = records.collect();
    assert!(records.len() == 14 && records.iter().all(|record| record.outcome.is_scored()));
    (records, first, other)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_does_not_begin_comes_from_another_server_and_its_record_has_both_calls() {
    let (records, hangs, answers) = recorded(FaultKind::Hang, Some(AT_ONCE), true).await;
    let place = format!(":{}", answers.port());
    for record in &records {
        let at = record.provenance.model.endpoint.as_deref().unwrap();
        assert!(at.contains(&place), "{at} answers nothing");
        let told: Vec<(bool, HedgeEnd)> =
            record.hedged.iter().map(|call| (call.server.ends_with(&place), call.end)).collect();
        match told[..] {
            // Only those of the first unit had to go to the server that hangs.
            [] => assert!(record.key.iteration >= IN_FLIGHT, "{}", record.key),
            [(false, HedgeEnd::Dropped), (true, HedgeEnd::Answered)] => {}
            // A call that was fast may have been made again at the server that hangs.
            [(true, HedgeEnd::Answered), (false, HedgeEnd::Dropped)] => {}
            _ => panic!("{}: {:?}", record.key, record.hedged),
        }
        assert!(record.hedged.iter().all(|call| call.round == 0 && call.sent_at <= call.ended_at));
    }
    // Their connections were closed, so that the server no longer works on them.
    until("dropped calls are over", &hangs, |hangs| hangs.stats().aborted >= u64::from(IN_FLIGHT));
    hangs.shutdown().await;
}

/// Long enough for a worker that looks for servers every two seconds, and for late calls every second.
const SLOW: FaultKind = FaultKind::Slow { delay_ms: 5_000 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_asked_twice_where_that_is_switched_off() {
    let (records, slow, _) = recorded(SLOW, None, true).await;
    assert!(records.iter().all(|record| record.hedged.is_empty()));
    slow.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_asked_twice_where_answers_come_whole() {
    let (records, slow, _) = recorded(SLOW, Some(AT_ONCE), false).await;
    assert!(records.iter().all(|record| record.hedged.is_empty()));
    slow.shutdown().await;
}

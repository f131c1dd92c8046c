//! Units from grant to end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use domain::exchange::Report;
use domain::{FailureCause, ModelUsage, Record, Usage};
use harness::failing_coordinator::{FailingCoordinator, FailingState};
use harness::gated_model::{GatedModel, failure};
use models::ChatReply;

use crate::at_work::{AtWork, config, model, one_model};

/// How long a test waits for what must come. Reached only where something is broken.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn units_are_held_delivered_and_finished() {
    let coordinator = FailingCoordinator::new(vec![model("m"), model("n")]);
    coordinator.unit("m", 0..10);
    coordinator.unit("m", 10..20);
    coordinator.unit("n", 20..35);
    let gate = GatedModel::answering().open();
    let worker = AtWork::start(config(gate.clone(), 4), &coordinator);
    let state = coordinator.until("the end of all units", FailingState::complete).await;
    assert_eq!(state.by_key().into_iter().collect::<Vec<_>>(), (0..35).map(|i| (i, 1)).collect::<Vec<_>>());
    assert_eq!((state.finished.len(), state.released.len(), state.parked.len()), (3, 0, 0));
    let record: Record = serde_json::from_str(&state.stored[0].json).unwrap();
    assert_eq!((record.attempt.number, record.attempt.generation), (1, 1));
    assert_eq!((record.attempt.worker.as_str(), &record.key), ("worker", &state.stored[0].key));
    let report = worker.drained().await;
    assert_eq!((report.dialogues, report.unacknowledged), (35, 0));
    assert_eq!((report.tally.granted, report.tally.delivered), (35, 35));
    assert_eq!(coordinator.state().deregistered, ["worker".into()]);
    assert_eq!(gate.calls(), 35);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_run_at_once_than_the_limit_and_than_the_configuration_says() {
    let mut narrow = model("n");
    narrow.concurrency = Some(2);
    let coordinator = FailingCoordinator::new(vec![model("m"), narrow]);
    coordinator.unit("n", 0..10);
    let gate = GatedModel::answering();
    let mut adapting = config(gate.clone(), 0);
    adapting.concurrency = None;
    let worker = AtWork::start(adapting, &coordinator);
    gate.in_flight(2).await;
    coordinator.reports("a renewal", |r| r.held.len() == 1).await;
    assert_eq!(gate.calls(), 2);
    let _open = gate.clone().open();
    coordinator.until("the end", FailingState::complete).await;
    worker.drained().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_lease_stops_its_dialogues_and_delivers_nothing_new() {
    let coordinator = one_model(0..10);
    let gate = GatedModel::answering();
    let worker = AtWork::start(config(gate.clone(), 3), &coordinator);
    gate.in_flight(3).await;
    // The lease keeper hears of it: the work loop waits for work.
    coordinator.lose(0);
    gate.in_flight(0).await;
    assert_eq!((gate.calls(), coordinator.state().stored.len()), (3, 0));
    coordinator.unit("m", 10..12);
    gate.answer(2);
    let state = coordinator.until("the end of the other unit", |state| state.stored.len() == 2).await;
    assert_eq!(state.by_key().into_keys().collect::<Vec<_>>(), [10, 11]);
    let report = worker.drained().await;
    assert_eq!((report.tally.lost, report.tally.delivered), (10, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_cannot_be_reached_is_parked_and_leaves_no_records() {
    let coordinator = FailingCoordinator::new(vec![model("m"), model("n")]);
    coordinator.unit("m", 0..10);
    coordinator.unit("m", 10..20);
    coordinator.unit("n", 20..30);
    let gate = GatedModel::new(|request| match request.key.model.as_str() {
        "m" => Err(failure(FailureCause::Connection)),
        _ => Ok(ChatReply::text("here")),
    });
    let worker = AtWork::start(config(gate.clone().open(), 2), &coordinator);
    let parked = |state: &FailingState| !state.parked.is_empty() && state.stored.len() == 10;
    let state = coordinator.until("a parking, and the other model's records", parked).await;
    assert_eq!(state.parked[0].model.as_str(), "m");
    assert_eq!(state.parked[0].parked_for.as_secs(), 60);
    assert!(state.parked[0].reason.contains("connection"), "{}", state.parked[0].reason);
    let of_m: Vec<_> = state.stored.iter().filter(|stored| stored.key.model.as_str() == "m").collect();
    assert!(of_m.is_empty(), "{of_m:?}");
    coordinator.until("all units of the model are back", |state| !state.released.is_empty()).await;
    let report = worker.drained().await;
    assert_eq!(report.tally.delivered, 10);
    assert_eq!(coordinator.state().stored.len(), 10);
}

#[tokio::test]
async fn what_dropped_records_have_used_is_in_the_next_record_of_the_model() {
    /// How many answers come from another model. Each is paid, and the first one parks the model.
    const WRONG: usize = 1;
    let coordinator = one_model(0..3);
    let asked = AtomicUsize::new(0);
    let gate = GatedModel::new(move |_| {
        if asked.fetch_add(1, Ordering::Relaxed) >= WRONG {
            return Ok(ChatReply::text("here"));
        }
        let usage = Usage { prompt_tokens: Some(100), completion_tokens: Some(7), ..Usage::default() };
        Err(failure(FailureCause::WrongModel).in_vain(usage))
    });
    let worker = AtWork::start(config(gate.open(), 1), &coordinator);
    coordinator.until("the unit is back", |state| !state.released.is_empty()).await;
    // The model is asked again after a minute.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    coordinator.change(|state| state.parked.clear());
    let state = coordinator.until("the end", FailingState::complete).await;
    let tokens = state.stored.iter().map(|stored| {
        let record: Record = serde_json::from_str(&stored.json).unwrap();
        let used = ModelUsage::of_dialogue(&record.rounds, &record.failed_calls);
        used.prompt_tokens + used.completion_tokens
    });
    let tokens: Vec<u64> = tokens.collect();
    assert_eq!((tokens.len(), tokens.iter().sum::<u64>()), (3, 107), "{tokens:?}");
    worker.drained().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_of_one_dialogue_is_a_record_like_any_other() {
    let coordinator = one_model(0..4);
    let gate = GatedModel::new(|request| match request.key.iteration {
        1 => Err(failure(FailureCause::Connection)),
        2 => Err(failure(FailureCause::ContextExceeded)),
        _ => Ok(ChatReply::text("here")),
    });
    let worker = AtWork::start(config(gate.open(), 1), &coordinator);
    let state = coordinator.until("the end", FailingState::complete).await;
    let failure = |iteration| {
        state.stored.iter().find(|stored| stored.key.iteration == iteration).and_then(|stored| stored.failure)
    };
    assert_eq!(
        [0, 1, 2, 3].map(failure),
        [None, Some(FailureCause::Connection), Some(FailureCause::ContextExceeded), None]
    );
    worker.drained().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_within_a_budget_ask_for_their_permits() {
    let mut limited = model("m");
    limited.calls_per_minute = Some(60);
    let coordinator = FailingCoordinator::new(vec![limited]);
    coordinator.unit("m", 0..5);
    let worker = AtWork::start(config(GatedModel::answering().open(), 4), &coordinator);
    let state = coordinator.until("the end", FailingState::complete).await;
    assert_eq!(state.permits, 5);
    worker.drained().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_within_a_budget_of_tokens_ask_for_what_they_will_take() {
    let mut limited = model("m");
    limited.tokens_per_minute = Some(1_000_000);
    let coordinator = FailingCoordinator::new(vec![limited]);
    coordinator.unit("m", 0..5);
    let worker = AtWork::start(config(GatedModel::answering().open(), 4), &coordinator);
    let state = coordinator.until("the end", FailingState::complete).await;
    assert!(state.permits > 5 * 500, "prompts and answers: {}", state.permits);
    worker.drained().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_cannot_keep_a_pack_parks_the_model_for_itself_alone() {
    let coordinator = FailingCoordinator::new(vec![model("m")]);
    let password = packs::published_password();
    let mut parts = packs::Parts::new("another");
    let builtin = packs::Pack::shared_builtin().unwrap();
    for (path, content) in builtin.parts().iter().filter(|(path, _)| *path != packs::manifest::HEADER_PATH) {
        parts.insert(path, content.to_vec()).unwrap();
    }
    parts.insert_header(&packs::Header { name: "another".into(), ..builtin.header().clone() }).unwrap();
    let sealed: Arc<[u8]> = packs::seal_quickly(&parts, &password).unwrap().into();
    let hash = packs::Pack::open_bytes("another", &sealed, &password).unwrap().hash().as_str().to_owned();
    coordinator.change(|state| state.pack = Some((hash, sealed)));
    coordinator.unit("m", 0..5);
    // A folder that cannot be written, whoever the test runs as.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let mut config = config(GatedModel::answering().open(), 4);
    config.pack_dir = Some(dir.path().join("file/packs"));
    let worker = AtWork::start(config, &coordinator);
    let tells =
        |report: &Report| report.status.not_asked.iter().any(|one| one.reason.contains("the pack folder"));
    let state = coordinator.reports("a model that is not asked", tells).await;
    assert_eq!((state.parked, state.stored.len()), (Vec::new(), 0));
    worker.drained().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_does_not_have_parks_the_model_with_the_reason() {
    let mut unreachable = model("m");
    unreachable.connector = domain::Connector::Replay;
    let coordinator = FailingCoordinator::new(vec![unreachable]);
    coordinator.unit("m", 0..5);
    let mut config = config(worker::Connectors::default(), 4);
    config.connectors = vec![domain::Connector::Replay];
    let worker = AtWork::start(config, &coordinator);
    let state = coordinator.until("a parking", |state| !state.parked.is_empty()).await;
    assert!(state.parked[0].reason.contains("connector `replay`"), "{}", state.parked[0].reason);
    coordinator.until("the unit is back", |state| state.released.len() == 1).await;
    worker.drained().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_are_renewed_while_everything_else_of_the_worker_stands_still() {
    const THREADS: usize = 2;
    let coordinator = one_model(0..10);
    let gate = GatedModel::answering();
    let worker = AtWork::start(config(gate.clone(), 3), &coordinator);
    gate.in_flight(3).await;
    // Every thread of the worker's runtime is taken, as by evaluations on all processors.
    let (taken, free) = (Arc::new(Barrier::new(THREADS + 1)), Arc::new(Barrier::new(THREADS + 1)));
    for _ in 0..THREADS {
        let (taken, free) = (Arc::clone(&taken), Arc::clone(&free));
        tokio::spawn(async move {
            taken.wait();
            free.wait();
        });
    }
    taken.wait();
    for _ in 0..3 {
        coordinator.change(|state| state.last_report = None);
        let begun = Instant::now();
        while coordinator.state().last_report.as_ref().is_none_or(|report| report.held.is_empty()) {
            assert!(begun.elapsed() < PATIENCE, "no lease is renewed");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    free.wait();
    let _open = gate.clone().open();
    let state = coordinator.until("the end", FailingState::complete).await;
    assert_eq!((state.by_key().len(), state.released.len()), (10, 0));
    worker.drained().await;
}

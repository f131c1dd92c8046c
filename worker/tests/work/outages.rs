//! Coordinators that are away, and workers that are killed meanwhile.

use std::time::{Duration, Instant};

use domain::exchange::NameTaken;
use domain::{FailureCause, InstanceId, RetryAdvice};
use harness::failing_coordinator::{FailingCoordinator, FailingState};
use harness::gated_model::GatedModel;
use models::{CallError, RetryPolicy};
use service_kit::metrics::Metrics;
use worker::{Stop, WorkerConfig, WorkerError};

use crate::at_work::{AtWork, config, model, one_model, spooled};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_waits_for_its_coordinator() {
    let coordinator = one_model(0..3);
    coordinator.change(|state| state.away = true);
    let worker = AtWork::start(config(GatedModel::answering().open(), 4), &coordinator);
    coordinator.until("an attempt to register", |state| state.failed_calls > 0).await;
    coordinator.change(|state| state.away = false);
    coordinator.until("the end", FailingState::complete).await;
    worker.drained().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_neither_stops_the_model_nor_loses_or_doubles_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = one_model(0..10);
    let gate = GatedModel::answering();
    let worker = AtWork::start(spooled(config(gate.clone(), 4), dir.path(), 1 << 20), &coordinator);
    gate.in_flight(4).await;
    coordinator.change(|state| state.away = true);
    gate.answer(10);
    // It goes on with what it holds, all of it.
    gate.in_flight(0).await;
    coordinator.until("attempts to deliver", |state| state.failed_deliveries > 1).await;
    assert_eq!((gate.calls(), coordinator.state().stored.len()), (10, 0));
    coordinator.change(|state| state.away = false);
    let state = coordinator.until("the end", FailingState::complete).await;
    assert!(state.by_key().values().all(|records| *records == 1), "{:?}", state.by_key());
    let report = worker.drained().await;
    assert_eq!((report.tally.delivered, report.unacknowledged), (10, 0));
    let left: Vec<_> = std::fs::read_dir(dir.path().join("worker")).unwrap().flatten().collect();
    let is_record = |file: &std::fs::DirEntry| file.file_name() != "lock" && file.file_name() != "instances";
    assert!(!left.iter().any(is_record), "{left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_worker_left_in_its_spool_is_sent_by_the_next_before_it_takes_work() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = one_model(0..6);
    coordinator.change(|state| state.full = true);
    let gate = GatedModel::answering();
    let worker = AtWork::start(spooled(config(gate.clone(), 6), dir.path(), 1 << 20), &coordinator);
    gate.in_flight(6).await;
    gate.answer(4);
    gate.in_flight(2).await;
    coordinator.until("an attempt to deliver", |state| state.failed_deliveries > 1).await;
    worker.stop(Stop::Abort);
    let report = worker.ended().await.unwrap();
    assert_eq!((report.unacknowledged, report.dialogues), (4, 4));

    coordinator.change(|state| state.full = false);
    gate.answer(2);
    let worker = AtWork::start(spooled(config(gate.clone(), 6), dir.path(), 1 << 20), &coordinator);
    let state = coordinator.until("the end", FailingState::complete).await;
    assert!(state.by_key().values().all(|records| *records == 1), "{:?}", state.by_key());
    assert_eq!(state.stored.len(), 6);
    assert_eq!(gate.calls(), 8, "two were stopped and asked again, four were not");
    worker.drained().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_spool_holds_the_work_back_until_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = one_model(0..50);
    coordinator.change(|state| state.full = true);
    let gate = GatedModel::answering().open();
    // The first record alone is longer than this.
    let worker = AtWork::start(spooled(config(gate.clone(), 2), dir.path(), 100), &coordinator);
    coordinator.until("several attempts to deliver", |state| state.failed_deliveries > 3).await;
    let calls = gate.calls();
    assert!(calls <= 2 * 2, "{calls} dialogues were begun with a full spool");
    coordinator.change(|state| state.full = false);
    let state = coordinator.until("the end", FailingState::complete).await;
    assert_eq!(state.stored.len(), 50);
    worker.drained().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_protected_runs_do_not_touch_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = FailingCoordinator::new(vec![model("m")]);
    coordinator.protect();
    coordinator.unit("m", 0..4);
    coordinator.change(|state| state.full = true);
    let worker =
        AtWork::start(spooled(config(GatedModel::answering().open(), 4), dir.path(), 1 << 20), &coordinator);
    coordinator.until("attempts to deliver", |state| state.failed_deliveries > 1).await;
    for file in std::fs::read_dir(dir.path().join("worker")).unwrap() {
        let file = file.unwrap();
        assert!(file.file_name() == "instances" || file.metadata().unwrap().len() == 0, "{file:?}");
    }
    coordinator.change(|state| state.full = false);
    coordinator.until("the end", FailingState::complete).await;
    worker.drained().await;
}

fn taken_by(instance: &str) -> NameTaken {
    let (silent_for, free_in) = (Duration::ZERO, Duration::from_secs(30));
    NameTaken { instance: InstanceId::new(instance), host: "here".to_owned(), silent_for, free_in }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_that_knows_only_the_process_before_this_one_is_told_who_follows_it() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = FailingCoordinator::new(vec![model("m")]);
    let gate = GatedModel::answering().open();
    let worker = AtWork::start(spooled(config(gate.clone(), 4), dir.path(), 1 << 20), &coordinator);
    coordinator.until("it is registered", |state| state.registered.len() == 1).await;
    worker.stop(Stop::Abort);
    worker.ended().await.unwrap();
    let instances = std::fs::read_to_string(dir.path().join("worker/instances")).unwrap();

    let worker = AtWork::start(spooled(config(gate.clone(), 4), dir.path(), 1 << 20), &coordinator);
    coordinator.until("the next is registered", |state| state.registered.len() == 2).await;
    // As another coordinator would answer, on another queue.
    coordinator.change(|state| state.taken = Some(taken_by(instances.trim())));
    coordinator.until("it has its name again", |state| state.taken.is_none()).await;
    assert_eq!(coordinator.state().registered.len(), 3);
    coordinator.unit("m", 0..6);
    coordinator.until("the end", FailingState::complete).await;

    // A process that it does not follow keeps the name.
    coordinator.change(|state| state.taken = Some(taken_by("stranger")));
    let error = worker.ended().await.unwrap_err();
    assert!(matches!(error, WorkerError::NameTaken { by, .. } if by.instance.as_str() == "stranger"));
    assert_eq!(coordinator.state().registered.len(), 3);
}

#[tokio::test]
async fn calls_that_fail_are_counted_while_their_dialogue_still_tries() {
    let metrics = Metrics::install().unwrap();
    let absent = GatedModel::new(|_| {
        Err(CallError::new(FailureCause::Connection, RetryAdvice::Unreachable, "nobody is there"))
    });
    let coordinator = FailingCoordinator::new(vec![model("counted")]);
    coordinator.unit("counted", 0..1);
    let again = Duration::from_secs(3600);
    let retry = RetryPolicy { delay_first: again, delay_max: again, ..RetryPolicy::default() };
    let worker = AtWork::start(WorkerConfig { retry, ..config(absent.clone().open(), 1) }, &coordinator);
    let counted = || {
        let page = metrics.render();
        let mut lines = page.lines().filter(|line| line.contains("failed_calls") && line.contains("counted"));
        lines.any(|line| line.contains("connection") && line.ends_with(" 1"))
    };
    let end = Instant::now() + Duration::from_secs(60);
    while !counted() && Instant::now() < end {
        tokio::task::yield_now().await;
    }
    assert!(counted(), "{}", metrics.render());
    assert_eq!((absent.calls(), coordinator.state().stored.len()), (1, 0), "the dialogue has not ended");
    worker.stop(Stop::Abort);
    worker.ended().await.unwrap();
}

//! Ends: by hand, by the coordinator, and by force.

use std::time::Duration;

use harness::failing_coordinator::FailingCoordinator;
use harness::gated_model::GatedModel;
use worker::Stop;

use crate::at_work::{AtWork, config, one_model};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_gives_back_what_has_not_begun_and_finishes_the_rest() {
    let coordinator = one_model(0..2);
    coordinator.unit("m", 2..4);
    let gate = GatedModel::answering();
    let worker = AtWork::start(config(gate.clone(), 2), &coordinator);
    gate.in_flight(2).await;
    coordinator.reports("both units are held", |r| r.held.len() == 2).await;
    worker.stop(Stop::Drain);
    let state =
        coordinator.until("the unit that has not begun is back", |state| !state.released.is_empty()).await;
    assert_eq!((state.released[0].unit, state.stored.len()), (1, 0));
    gate.answer(2);
    let report = worker.ended().await.unwrap();
    assert_eq!((report.tally.delivered, report.tally.released), (2, 2));
    let state = coordinator.state();
    assert_eq!((state.finished.len(), state.released.len(), state.deregistered.len()), (1, 1, 1));
    assert_eq!(gate.calls(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_outlasts_the_grace_period_is_stopped_and_given_back() {
    let coordinator = one_model(0..2);
    let gate = GatedModel::answering();
    let mut config = config(gate.clone(), 2);
    config.grace = Duration::from_millis(1);
    let worker = AtWork::start(config, &coordinator);
    gate.in_flight(2).await;
    let report = worker.drained().await;
    assert_eq!((report.dialogues, report.tally.released), (0, 2));
    assert_eq!(coordinator.state().released.len(), 1);
    gate.in_flight(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_can_ask_for_the_end() {
    let coordinator = one_model(0..2);
    let gate = GatedModel::answering();
    let worker = AtWork::start(config(gate.clone(), 2), &coordinator);
    gate.in_flight(2).await;
    coordinator.change(|state| state.drain = true);
    coordinator.reports("the worker is draining", |r| r.draining).await;
    gate.answer(2);
    let report = worker.ended().await.unwrap();
    assert_eq!(report.tally.delivered, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_stop_waits_for_nothing() {
    let coordinator = one_model(0..2);
    let gate = GatedModel::answering();
    let worker = AtWork::start(config(gate.clone(), 2), &coordinator);
    gate.in_flight(2).await;
    worker.stop(Stop::Drain);
    worker.stop(Stop::Abort);
    let report = worker.ended().await.unwrap();
    assert_eq!((report.dialogues, report.tally.released), (0, 2));
    assert_eq!(coordinator.state().released.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_never_reached_its_coordinator_ends_at_once() {
    let coordinator = FailingCoordinator::new(Vec::new());
    coordinator.change(|state| state.away = true);
    let worker = AtWork::start(config(GatedModel::answering(), 2), &coordinator);
    coordinator.until("an attempt to register", |state| state.failed_calls > 0).await;
    worker.stop(Stop::Drain);
    assert_eq!(worker.ended().await.unwrap().dialogues, 0);
}

//! Workers that end when their models have no work left.

use std::time::Duration;

use domain::exchange::{Departure, Outlook, Report, WorkerPhase};
use harness::failing_coordinator::FailingCoordinator;
use harness::gated_model::GatedModel;
use worker::until_done::{LOOKS_APART_MIN, WorkerEnding};
use worker::{EndRules, Endpoints, IdleAfter, Stop, WorkerConfig};

use crate::at_work::{AtWork, config, model, one_model, spooled};

/// A worker that ends by itself, and keeps an idle server for so long.
fn until_done(config: WorkerConfig, idle_after: Duration) -> WorkerConfig {
    let until_done = EndRules {
        idle_after: IdleAfter::Exactly(idle_after),
        server_wait: Duration::from_secs(600),
        leave_surplus: true,
    };
    WorkerConfig { until_done: Some(until_done), expected_models: vec!["m".to_owned()], ..config }
}

const LONG: Duration = Duration::from_secs(600);

fn why(ended: Option<WorkerEnding>) -> Option<Departure> {
    ended.map(|ending| ending.why)
}

fn says(coordinator: &FailingCoordinator, outlook: Outlook) {
    coordinator.change(|state| state.outlook = Some(outlook));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_works_everything_off_and_ends_when_it_is_told_twice_that_nothing_is_left() {
    let coordinator = one_model(0..6);
    says(&coordinator, Outlook::Done);
    let began = std::time::Instant::now();
    let worker = AtWork::start(until_done(config(GatedModel::answering().open(), 4), LONG), &coordinator);
    let report = worker.ended().await.unwrap();
    assert_eq!((report.tally.delivered, report.unacknowledged), (6, 0));
    assert_eq!(why(report.ended), Some(Departure::Done));
    assert!(began.elapsed() >= LOOKS_APART_MIN, "two answers lie that far apart");
    let state = coordinator.state();
    assert!(state.complete() && state.told >= 2, "{}", state.told);
    assert_eq!((state.deregistered.len(), state.why), (1, Some(Departure::Done)));
    let last = state.last_report.unwrap();
    assert_eq!(last.until.unwrap().expects, ["m"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_told_to_end_after_it_heard_that_nothing_is_left_is_done() {
    let coordinator = FailingCoordinator::new(vec![model("m")]);
    says(&coordinator, Outlook::Done);
    let worker = AtWork::start(until_done(config(GatedModel::answering().open(), 4), LONG), &coordinator);
    coordinator.until("the first answer", |state| state.told > 0).await;
    // The answer may still be on its way: the next question is one of a worker that has it.
    let told = coordinator.state().told;
    coordinator.until("the next answer", |state| state.told > told).await;
    worker.stop(Stop::Drain);
    assert_eq!(why(worker.ended().await.unwrap().ended), Some(Departure::Done));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_waits_for_every_receipt_before_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = one_model(0..2);
    says(&coordinator, Outlook::Done);
    let gate = GatedModel::answering();
    let config = until_done(config(gate.clone(), 4), LONG);
    let worker = AtWork::start(spooled(config, dir.path(), 1 << 20), &coordinator);
    gate.in_flight(2).await;
    coordinator.change(|state| state.full = true);
    gate.answer(2);
    coordinator.until("attempts to deliver", |state| state.failed_deliveries > 1).await;
    // Somebody else has its unit and has done it: it holds nothing but records.
    coordinator.lose(0);
    coordinator.reports("it ends", |report| report.draining).await;
    let tried = coordinator.state().failed_deliveries;
    coordinator.until("more attempts", |state| state.failed_deliveries > tried + 2).await;
    coordinator.change(|state| state.full = false);
    let report = worker.ended().await.unwrap();
    assert_eq!((report.unacknowledged, why(report.ended)), (0, Some(Departure::Done)));
    assert_eq!(coordinator.state().stored.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_told_to_end_while_it_waits_for_receipts_does_not_say_that_it_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = one_model(0..1);
    says(&coordinator, Outlook::Done);
    let gate = GatedModel::answering();
    let config = until_done(config(gate.clone(), 4), LONG);
    let worker = AtWork::start(spooled(config, dir.path(), 1 << 20), &coordinator);
    gate.in_flight(1).await;
    coordinator.change(|state| state.full = true);
    gate.answer(1);
    coordinator.until("attempts to deliver", |state| state.failed_deliveries > 1).await;
    coordinator.lose(0);
    coordinator.reports("it ends", |report| report.draining).await;
    worker.stop(Stop::Abort);
    let report = worker.ended().await.unwrap();
    assert_eq!((report.unacknowledged, report.ended), (1, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_a_run_that_nobody_knows_are_a_failure_after_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = one_model(0..1);
    coordinator.change(|state| state.unknown_run = true);
    says(&coordinator, Outlook::Done);
    let config = until_done(config(GatedModel::answering().open(), 4), Duration::from_millis(200));
    let worker = AtWork::start(spooled(config, dir.path(), 1 << 20), &coordinator);
    coordinator.reports("it tells of it", |report| report.status.parked_records == 1).await;
    coordinator.lose(0);
    let report = worker.ended().await.unwrap();
    let ended = report.ended.unwrap();
    assert_eq!((report.unacknowledged, ended.why), (1, Departure::Failed));
    assert!(ended.reason.contains("1 records"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_come_ends_it_and_one_that_loads_is_no_trouble() {
    let coordinator = FailingCoordinator::new(vec![model("m")]);
    says(&coordinator, Outlook::Work);
    let mut config = until_done(config(GatedModel::answering(), 4), LONG);
    config.connectors = Vec::new();
    config.endpoints = Endpoints::Listed(vec!["http://127.0.0.1:9".to_owned()]);
    let readiness = config.readiness.clone();
    let rules = config.until_done.as_mut().unwrap();
    rules.server_wait = Duration::from_secs(2);
    let worker = AtWork::start(config, &coordinator);
    let is_loading = |report: &Report| {
        report.status.phase == Some(WorkerPhase::Loading) && report.status.trouble.is_none()
    };
    coordinator.reports("it says that its server loads", is_loading).await;
    assert_eq!(readiness.get(), Ok(()), "ready is who is registered");
    let ended = worker.ended().await.unwrap().ended.unwrap();
    assert_eq!(ended.why, Departure::Failed);
    assert!(ended.reason.contains("http://127.0.0.1:9"), "{ended:?}");
    assert_eq!(coordinator.state().why, Some(Departure::Failed));
}

//! Runs of one process, and what it does when something underneath fails.

use std::sync::Arc;

use domain::control::{BenchmarkCommand, Control, RunPhase, Submission};
use domain::exchange::{Receipt, WorkExchange};
use domain::{ErrorCode, RunId};
use queue::MemoryStore;
use results::{RunDir, RunManifest};
use serde_json::json;

use super::ground::*;
use super::worker::*;
use crate::{CoordinatorOptions, Scope};

fn local() -> CoordinatorOptions {
    CoordinatorOptions { scope: Scope::Local, ..config() }
}

/// A submission that one process can run.
fn at_home(iterations: u32) -> Submission {
    let mut submission = submission(iterations);
    submission.configuration["models"][0]["endpoint"] = json!("http://127.0.0.1:1/v1");
    submission
}

/// Another process: nothing is shared with the one before but the folder.
fn another_process(ground: &mut Ground) -> Arc<Started> {
    ground.lose_queue();
    ground.coordinator_with(local())
}

#[tokio::test]
async fn an_interrupted_run_goes_on_in_another_process_but_not_in_two_at_once() {
    let mut ground = Ground::new();
    let coordinator = ground.coordinator_with(local());
    let run = coordinator.submit(at_home(10)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 5).await;
    let mut answered = 0;
    for grant in std::mem::take(&mut worker.held) {
        let records: Vec<_> = keys(&grant).iter().map(|key| scored(&grant.lease, key)).collect();
        answered += records.len() as u64;
        coordinator.deliver(records).await.unwrap();
    }
    let view = coordinator.view(&run).await.unwrap();
    assert!(view.rate > 0.0 && view.eta_s.is_some(), "{view:?}");
    let second = another_process(&mut ground);
    let busy = second.submit(at_home(10)).await.unwrap_err();
    assert_eq!(busy.code, ErrorCode::Conflict, "{busy}");
    assert!(busy.message.contains("another process"), "{busy}");
    assert_eq!(second.view(&run).await.unwrap().scored, answered, "looking at it is allowed");
    drop((coordinator, second));

    let coordinator = another_process(&mut ground);
    // Nobody asked for it, so it rests.
    coordinator.tend().await.unwrap();
    let mut worker = Worker::new("w");
    assert!(worker.exchange(&coordinator, 5).await.grants.is_empty());
    let view = coordinator.command(&run, BenchmarkCommand::Resume).await.unwrap();
    assert_eq!((view.phase, view.scored), (RunPhase::Active, answered));
    assert_eq!((view.rate, view.eta_s), (0.0, None), "what was there before says nothing about the rate");
    let queued: u64 = ground
        .queue
        .counts(&coordinator.parts().loaded.known(&run).await.unwrap().at().unwrap())
        .await
        .unwrap()
        .iter()
        .map(|counts| counts.backlog_dialogues)
        .sum();
    assert_eq!(queued + answered, 40, "what is done is not even queued");
    let mut asked = Vec::new();
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len() as u64 + answered, 40);
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 40));
    assert_eq!(view, recomputed(&coordinator, &view).await);
}

#[tokio::test]
async fn a_run_that_was_killed_before_it_was_finished_is_finished_by_the_same_submission() {
    let mut ground = Ground::new();
    let coordinator = ground.coordinator_with(local());
    let run = coordinator.submit(at_home(2)).await.unwrap().run;
    Worker::new("w").work_off(&coordinator, &mut Vec::new()).await;
    drop(coordinator);

    let coordinator = another_process(&mut ground);
    let proposal = coordinator.propose(at_home(2)).await.unwrap();
    assert!(!proposal.is_new());
    assert_eq!(coordinator.begin(&proposal).await.unwrap().run, run);
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Finished);
    assert!(coordinator.propose(at_home(2)).await.unwrap().is_new());
    assert_eq!(coordinator.list().await.unwrap().len(), 1, "what is proposed is not written");
}

#[tokio::test]
async fn what_was_cancelled_or_scored_again_is_no_unfinished_run() {
    let mut ground = Ground::new();
    let coordinator = ground.coordinator_with(local());
    let run = coordinator.submit(at_home(2)).await.unwrap().run;
    let unfinished = coordinator.propose(at_home(2)).await.unwrap();
    assert!(!unfinished.is_new());
    coordinator.command(&run, BenchmarkCommand::Cancel).await.unwrap();
    assert!(coordinator.propose(at_home(2)).await.unwrap().is_new());
    // As `kgfleet rejudge` writes it: the same configuration, and only what was recorded.
    let mut again = RunManifest { run: "z".into(), ..unfinished.manifest().clone() };
    again.other.insert("rejudged_from".to_owned(), run.as_str().into());
    RunDir::create(ground.data.path(), &again).unwrap();
    drop(coordinator);
    assert!(another_process(&mut ground).propose(at_home(2)).await.unwrap().is_new());
}

#[tokio::test]
async fn a_fleet_leaves_the_runs_of_single_processes_alone() {
    let ground = Ground::new();
    let coordinator = ground.coordinator_with(local());
    let run = coordinator.submit(at_home(2)).await.unwrap().run;
    let elsewhere = Arc::new(MemoryStore::checked(ground.clock.clone()));
    let fleet = start(config(), elsewhere, ground.data.path());
    fleet.tend().await.unwrap();
    let mut worker = Worker::new("w");
    assert!(worker.exchange(&fleet, 9).await.grants.is_empty());
    assert_eq!(fleet.list().await.unwrap()[0].run, run);
    worker.exchange(&coordinator, 9).await;
    let grant = worker.held[0].clone();
    let record = scored(&grant.lease, &keys(&grant)[0]);
    let receipts = fleet.deliver(vec![record]).await.unwrap();
    assert!(matches!(&receipts[0], Receipt::Later { reason } if reason.contains("this fleet")));
}

#[tokio::test]
async fn a_sink_that_cannot_be_written_keeps_the_records_with_the_workers() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    coordinator.ready().unwrap();
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held[0].clone();
    let record = scored(&grant.lease, &keys(&grant)[0]);
    // The folder of the log becomes a file: no segment can be opened in it.
    let log = coordinator.parts().store.sink.run_dir(&run).unwrap().log();
    std::fs::remove_dir_all(&log).unwrap();
    std::fs::write(&log, b"").unwrap();
    let error = coordinator.deliver(vec![record.clone()]).await.unwrap_err();
    assert!(error.code.is_transient(), "{error}");
    let unready = coordinator.ready().unwrap_err();
    assert_eq!(coordinator.view(&run).await.unwrap().trouble, Some(unready.message));
    assert_eq!(coordinator.view(&run).await.unwrap().scored, 0);
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    assert_eq!(coordinator.deliver(vec![record]).await.unwrap(), [Receipt::Stored]);
    coordinator.ready().unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().scored, 1);
}

#[tokio::test]
async fn what_is_fit_has_nothing_to_say() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let warnings = coordinator.check().await.unwrap();
    // Little space is the one thing that the machine of a test may be warned of.
    assert!(warnings.iter().all(|warning| warning.contains("MiB are free")), "{warnings:?}");
    assert!(coordinator.view(&RunId::new("../up")).await.is_err());
}

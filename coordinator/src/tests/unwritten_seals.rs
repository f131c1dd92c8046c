//! A seal that cannot be written, such as on a full disk: nobody takes a run for sealed that is not.

use std::sync::Arc;

use domain::FailureCause;
use domain::control::{Control, RunPhase};
use domain::exchange::WorkExchange;
use results::log::Seals;

use super::failing_sink::FailingSink;
use super::ground::*;
use super::worker::*;
use crate::tending::ROUNDS_PER_DISCOVERY;

#[tokio::test]
async fn a_run_whose_seal_could_not_be_written_finishes_with_the_next_round_that_can() {
    let ground = Ground::new();
    let (folder, sink) = FailingSink::new(ground.data.path());
    let one = Started::of(config(), Arc::clone(&ground.queue), folder);
    let run = one.submit(submission(1)).await.unwrap().run;
    let log = ground.data.path().join("runs").join(run.as_str()).join("log");
    let seals = || Seals::read(&log).unwrap().0;
    let full = |is_full| if is_full { sink.fail(|call| call == "write_seal") } else { sink.recover() };
    let mut worker = Worker::new("w");
    fail_everything(&mut worker, &one).await;
    full(true);
    for _ in 0..3 {
        let _ = one.tend().await;
        assert!(!seals().is_closed());
        assert_ne!(one.view(&run).await.unwrap().phase, RunPhase::Finished, "its winners are not fixed");
    }
    full(false);
    one.tend().await.unwrap();
    assert_eq!(one.view(&run).await.unwrap().phase, RunPhase::Finished);
    assert!(seals().is_closed());

    // The same where it is opened again.
    full(true);
    assert!(one.retry(&run, &[]).await.is_err());
    full(false);
    one.retry(&run, &[]).await.unwrap();
    one.tend().await.unwrap();
    assert!(!seals().is_closed());
    let mut asked = Vec::new();
    worker.work_off(&one, &mut asked).await;
    assert_eq!(asked.len(), 4);
    one.tend().await.unwrap();
    one.tend().await.unwrap();
    let view = one.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 4));
    assert!(seals().is_closed());
    assert_eq!(view, recomputed(&one, &view).await);
}

/// Works off everything that there is to do, without an answer.
async fn fail_everything(worker: &mut Worker, one: &Started) {
    worker.exchange(one, 50).await;
    for grant in std::mem::take(&mut worker.held) {
        let fail = |key| failed(&grant.lease, key, FailureCause::Timeout);
        one.deliver(keys(&grant).iter().map(fail).collect()).await.unwrap();
        worker.finished.push(grant.lease);
    }
    worker.exchange(one, 0).await;
}

#[tokio::test]
async fn a_finished_run_that_a_command_reopened_for_nothing_is_closed_again() {
    let ground = Ground::new();
    let (folder, sink) = FailingSink::new(ground.data.path());
    let one = Started::of(config(), Arc::clone(&ground.queue), folder);
    let run = one.submit(submission(1)).await.unwrap().run;
    let log = ground.data.path().join("runs").join(run.as_str()).join("log");
    let is_closed = || Seals::read(&log).unwrap().0.is_closed();
    let mut worker = Worker::new("w");
    fail_everything(&mut worker, &one).await;
    one.tend().await.unwrap();
    assert!(is_closed());
    let mut reopened = false;
    sink.fail(move |call| {
        reopened |= call == "write_seal";
        reopened && call == "create"
    });
    one.retry(&run, &[]).await.unwrap_err();
    sink.recover();
    assert_eq!((one.view(&run).await.unwrap().phase, is_closed()), (RunPhase::Finished, false));

    let mut rounds = 0;
    while !is_closed() {
        assert!(rounds < 2 * ROUNDS_PER_DISCOVERY, "it stays open");
        one.tend().await.unwrap();
        rounds += 1;
    }
    assert!(rounds > 1, "whoever reopened it might have been about to let it go on");
    // It can be asked again, and what comes then counts.
    assert_eq!(one.retry(&run, &[]).await.unwrap(), 0, "it is asked what the command before has queued");
    let mut asked = Vec::new();
    worker.work_off(&one, &mut asked).await;
    one.tend().await.unwrap();
    one.tend().await.unwrap();
    let view = one.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored, asked.len()), (RunPhase::Finished, 4, 4));
    assert!(is_closed());
}

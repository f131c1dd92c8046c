//! Runs that are finished: which records count no longer changes, unless somebody asks for it.

use domain::FailureCause;
use domain::control::{Control, RunPhase};
use domain::exchange::{Receipt, WorkExchange};

use super::ground::*;
use super::worker::*;

#[tokio::test]
async fn a_late_record_of_a_finished_run_is_kept_and_changes_nothing() {
    let ground = Ground::new();
    let (one, two) = (ground.coordinator(), ground.coordinator());
    let run = one.submit(submission(2)).await.unwrap().run;
    two.tend().await.unwrap();
    let mut worker = Worker::new("w");
    worker.exchange(&one, 100).await;
    let (mut late, mut later) = (Vec::new(), Vec::new());
    for grant in std::mem::take(&mut worker.held) {
        let keys = keys(&grant);
        let records = keys.iter().map(|key| failed(&grant.lease, key, FailureCause::Timeout)).collect();
        one.deliver(records).await.unwrap();
        late.push(scored(&grant.lease, &keys[0]));
        later.push(scored(&grant.lease, &keys[0]));
        worker.finished.push(grant.lease);
    }
    worker.exchange(&one, 0).await;
    one.tend().await.unwrap();
    let view = one.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, 0, 8));
    let exported = winners(&one, &run).await;

    // One delivery to each coordinator; the second has not heard yet that the run is finished.
    for (coordinator, late) in [(&one, &late), (&two, &later)] {
        let receipts = coordinator.deliver(late.clone()).await.unwrap();
        assert!(receipts.iter().all(|receipt| *receipt == Receipt::Stored));
    }
    for coordinator in [&one, &two, &ground.coordinator()] {
        coordinator.tend().await.unwrap();
        let view = coordinator.view(&run).await.unwrap();
        assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, 0, 8));
        assert_eq!(winners(coordinator, &run).await, exported);
        assert_eq!(view, recomputed(coordinator, &view).await);
    }

    // Who asks for the failed ones again gets new records that count.
    assert_eq!(two.retry(&run, &[]).await.unwrap(), 8);
    one.tend().await.unwrap();
    let mut asked = Vec::new();
    worker.work_off(&one, &mut asked).await;
    assert_eq!(asked.len(), 8);
    for coordinator in [&one, &two] {
        coordinator.tend().await.unwrap();
        coordinator.tend().await.unwrap();
    }
    for coordinator in [&one, &two, &ground.coordinator()] {
        let view = coordinator.view(&run).await.unwrap();
        assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, 8, 0));
        assert_eq!(view, recomputed(coordinator, &view).await);
        let now = winners(coordinator, &run).await;
        assert!(late.iter().all(|late| now[&late.key].attempt.id != record_id(late)), "late for ever");
    }
}

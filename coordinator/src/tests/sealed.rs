//! Records that come when their run is finished.

use domain::FailureCause;
use domain::control::{Control, RunPhase};
use domain::exchange::{Receipt, WorkExchange};

use super::ground::*;
use super::worker::*;

#[tokio::test]
async fn a_late_record_of_a_finished_run_counts_by_the_rule() {
    let ground = Ground::new();
    let (one, two) = ground.two_users();
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
    for records in [&late, &later] {
        let receipts = one.deliver(records.clone()).await.unwrap();
        assert!(receipts.iter().all(|receipt| *receipt == Receipt::Stored));
    }
    one.tend().await.unwrap();
    let exported = winners(&one, &run).await;
    assert!(
        late.iter().all(|late| exported[&late.key].attempt.id == record_id(late)),
        "the first scored one"
    );
    drop((one, two));
    let next = ground.coordinator();
    let scored = late.len() as u64;
    assert_eq!(next.list().await.unwrap()[0].scored, scored, "the list knows, too");
    next.tend().await.unwrap();
    let view = next.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, scored, 8 - scored));
    assert_eq!(winners(&next, &run).await, exported);
    assert_eq!(view, recomputed(&next, &view).await);
    // Who asks for the failed ones again gets these alone.
    assert_eq!(next.retry(&run, &[]).await.unwrap(), 8 - scored);
}

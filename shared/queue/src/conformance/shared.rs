//! What all runs share: workers and rate budgets.

use super::*;

pub async fn workers_come_go_and_drain(bench: Bench) {
    let (a, b) = (WorkerId::new("a"), WorkerId::new("b"));
    let orders = bench.store.heartbeat(&b, b"\x00\xff", LEASE).await.unwrap();
    assert_eq!(orders, Orders { drain: false });
    bench.store.heartbeat(&a, b"one", LEASE).await.unwrap();
    let workers = bench.store.workers().await.unwrap();
    let seen: Vec<_> = workers.iter().map(|w| (w.worker.as_str(), w.info.as_slice(), w.draining)).collect();
    assert_eq!(seen, [("a", b"one".as_slice(), false), ("b", b"\x00\xff".as_slice(), false)]);
    assert!(bench.store.drain_worker(&a).await.unwrap());
    assert!(!bench.store.drain_worker(&"unknown".into()).await.unwrap());
    assert!(bench.store.heartbeat(&a, b"two", LEASE).await.unwrap().drain);
    assert!(!bench.store.heartbeat(&b, b"", LEASE).await.unwrap().drain);
    let workers = bench.store.workers().await.unwrap();
    assert!(workers[0].draining && workers[0].info == b"two");
    bench.store.deregister(&a).await.unwrap();
    bench.store.deregister(&a).await.unwrap();
    // Whoever comes back under the same name is not asked to drain again.
    assert!(!bench.store.heartbeat(&a, b"three", LEASE).await.unwrap().drain);
    bench.store.drain_worker(&b).await.unwrap();
    bench.time.advance(STEP).await;
    bench.store.heartbeat(&a, b"four", LEASE).await.unwrap();
    bench.time.advance(STEP).await;
    let workers = bench.store.workers().await.unwrap();
    assert_eq!(workers.iter().map(|w| w.worker.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(!bench.store.drain_worker(&b).await.unwrap());
    assert!(!bench.store.heartbeat(&b, b"", LEASE).await.unwrap().drain);
}

pub async fn a_rate_budget_is_shared(bench: Bench) {
    // One permit a minute, sixty in a full bucket: waits of minutes hide a server's milliseconds.
    let rate = Rate { per_minute: 1, burst: 60 };
    let take = |bucket: &'static str, permits| {
        let store = bench.store.clone();
        async move { store.take_rate(bucket, rate, permits).await.unwrap() }
    };
    assert_eq!(take("provider/key-1", 40).await, RateReply::Granted);
    assert_eq!(take("provider/key-1", 20).await, RateReply::Granted);
    let RateReply::Wait { ms } = take("provider/key-1", 20).await else { panic!("the bucket is empty") };
    assert!((1_100_000..=1_200_000).contains(&ms), "{ms}");
    assert_eq!(take("provider/key-2", 60).await, RateReply::Granted);
    bench.time.advance(STEP).await;
    assert_eq!(take("provider/key-1", 39).await, RateReply::Granted);
    assert!(matches!(take("provider/key-1", 39).await, RateReply::Wait { .. }));
    bench.time.advance(STEP * 10).await;
    // A bucket never holds more than its burst.
    assert_eq!(take("provider/key-1", 60).await, RateReply::Granted);
    assert!(matches!(take("provider/key-1", 1).await, RateReply::Wait { .. }));
}

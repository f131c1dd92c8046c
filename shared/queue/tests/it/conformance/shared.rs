//! What all runs share: workers, what is said of pools, and rate budgets.

use super::*;

async fn beat(bench: &Bench, worker: &WorkerId, info: &[u8]) -> HeartbeatOrders {
    match bench.store.heartbeat(worker, &Claim::default(), info, LEASE).await.unwrap() {
        Heartbeat::Registered(orders) => orders,
        Heartbeat::Taken(by) => panic!("{by:?}"),
    }
}

pub async fn workers_come_go_and_drain(bench: Bench) {
    let (a, b) = (WorkerId::new("a"), WorkerId::new("b"));
    let orders = beat(&bench, &b, b"\x00\xff").await;
    assert_eq!(orders, HeartbeatOrders { drain: false });
    beat(&bench, &a, b"one").await;
    let workers = bench.store.workers().await.unwrap();
    let seen: Vec<_> = workers.iter().map(|w| (w.worker.as_str(), w.info.as_slice(), w.draining)).collect();
    assert_eq!(seen, [("a", b"one".as_slice(), false), ("b", b"\x00\xff".as_slice(), false)]);
    assert!(bench.store.drain_worker(&a).await.unwrap());
    assert!(!bench.store.drain_worker(&"unknown".into()).await.unwrap());
    assert!(beat(&bench, &a, b"two").await.drain);
    assert!(!beat(&bench, &b, b"").await.drain);
    let workers = bench.store.workers().await.unwrap();
    assert!(workers[0].draining && workers[0].info == b"two");
    let none = InstanceId::default();
    assert!(bench.store.deregister(&a, &none).await.unwrap());
    assert!(bench.store.deregister(&a, &none).await.unwrap());
    // Whoever comes back under the same name is not asked to drain again.
    assert!(!beat(&bench, &a, b"three").await.drain);
    bench.store.drain_worker(&b).await.unwrap();
    bench.time.advance(STEP).await;
    beat(&bench, &a, b"four").await;
    bench.time.advance(STEP).await;
    let workers = bench.store.workers().await.unwrap();
    assert_eq!(workers.iter().map(|w| w.worker.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(!bench.store.drain_worker(&b).await.unwrap());
    assert!(!beat(&bench, &b, b"").await.drain);
}

pub async fn a_name_has_one_process_until_it_is_silent_or_followed(bench: Bench) {
    let w = WorkerId::new("w");
    let claim = |instance: &str, predecessors: &[&str]| Claim {
        instance: instance.into(),
        predecessors: predecessors.iter().map(|id| InstanceId::new(*id)).collect(),
        identity: String::new(),
    };
    let beat = |claim: Claim| {
        let (store, w) = (bench.store.clone(), w.clone());
        async move { store.heartbeat(&w, &claim, b"here", LEASE).await.unwrap() }
    };
    let ours = Heartbeat::Registered(HeartbeatOrders { drain: false });
    assert_eq!(beat(claim("one", &[])).await, ours);
    assert_eq!(beat(claim("one", &[])).await, ours);
    bench.time.advance(STEP).await;
    let Heartbeat::Taken(WorkerNameTaken { instance, info, silent_ms, free_in_ms }) =
        beat(claim("two", &[])).await
    else {
        panic!("the name is another one's")
    };
    assert_eq!((instance.as_str(), info.as_slice()), ("one", b"here".as_slice()));
    let near = |ms: u64, than: Duration| ms.abs_diff(than.as_millis() as u64) < 60_000;
    assert!(near(silent_ms, STEP) && near(free_in_ms, LEASE - STEP), "{silent_ms} {free_in_ms}");
    assert_eq!(bench.store.workers().await.unwrap()[0].instance.as_str(), "one");
    // A stranger does not take the name away either.
    assert!(!bench.store.deregister(&w, &"two".into()).await.unwrap());
    // A restart follows its own earlier process at once, and the earlier one learns of it.
    assert_eq!(beat(claim("three", &["zero", "one"])).await, ours);
    assert!(matches!(beat(claim("one", &[])).await, Heartbeat::Taken(by) if by.instance.as_str() == "three"));
    // Silence frees the name.
    bench.time.advance(LEASE).await;
    assert_eq!(beat(claim("two", &[])).await, ours);
    assert!(bench.store.deregister(&w, &"two".into()).await.unwrap());
    assert!(bench.store.deregister(&w, &"one".into()).await.unwrap());
    assert_eq!(beat(claim("one", &[])).await, ours);
    // Workers that tell no process follow any, and are followed by any.
    assert_eq!(beat(claim("", &[])).await, ours);
    assert_eq!(beat(claim("four", &[])).await, ours);
}

pub async fn one_identity_leaves_places_for_others(bench: Bench) {
    let beat = |worker: String, identity: &'static str| {
        let store = bench.store.clone();
        let claim = Claim::of(InstanceId::default(), identity);
        async move { store.heartbeat(&WorkerId::new(worker), &claim, b"", LEASE).await }
    };
    for number in 0..limits::WORKERS_PER_IDENTITY_MAX {
        beat(format!("flood-{number}"), "thief").await.unwrap();
    }
    let refused = beat("one-more".to_owned(), "thief").await;
    assert!(matches!(refused, Err(Error::WorkersFull { .. })), "{refused:?}");
    beat("flood-0".to_owned(), "thief").await.unwrap();
    beat("w".to_owned(), "pool").await.unwrap();
    beat("v".to_owned(), "").await.unwrap();
    // Who ends makes room.
    assert!(bench.store.deregister(&"flood-7".into(), &InstanceId::default()).await.unwrap());
    beat("one-more".to_owned(), "thief").await.unwrap();
    bench.time.advance(LEASE).await;
    beat("another".to_owned(), "thief").await.unwrap();
    assert_eq!(bench.store.workers().await.unwrap().len(), 1);
}

pub async fn what_is_said_of_pools_is_kept_for_a_while(bench: Bench) {
    let note = |release: String, info: &'static [u8]| {
        let store = bench.store.clone();
        async move { store.note_pools(&release, info, LEASE).await }
    };
    let known = || async {
        let pools = bench.store.pools().await.unwrap();
        pools.into_iter().map(|entry| (entry.release, entry.info)).collect::<Vec<_>>()
    };
    assert_eq!(known().await, []);
    note("b".to_owned(), b"\x00\xff").await.unwrap();
    note("a".to_owned(), b"one").await.unwrap();
    note("a".to_owned(), b"two").await.unwrap();
    let both = [("a".to_owned(), b"two".to_vec()), ("b".to_owned(), b"\x00\xff".to_vec())];
    assert_eq!(known().await, both);
    bench.time.advance(STEP).await;
    note("a".to_owned(), b"three").await.unwrap();
    bench.time.advance(STEP).await;
    // `b` has said nothing for too long.
    assert_eq!(known().await, [("a".to_owned(), b"three".to_vec())]);
    for number in 1..limits::RELEASES_MAX {
        note(format!("r-{number:02}"), b"").await.unwrap();
    }
    let refused = note("one-more".to_owned(), b"").await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    note("a".to_owned(), b"four").await.unwrap();
    assert_eq!(known().await.len(), limits::RELEASES_MAX);
    let long = vec![0; limits::POOLS_INFO_BYTES_MAX + 1];
    assert!(matches!(bench.store.note_pools("a", &long, LEASE).await, Err(Error::Invalid { .. })));
    assert!(matches!(bench.store.note_pools("", b"", LEASE).await, Err(Error::Invalid { .. })));
}

pub async fn a_rate_budget_is_shared(bench: Bench) {
    // One permit a minute, sixty in a full bucket: waits of minutes hide a server's milliseconds.
    let rate = RateLimit { per_minute: 1, burst: 60 };
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

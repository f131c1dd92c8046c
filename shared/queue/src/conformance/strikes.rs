//! Strikes, take-overs and dead letters.

use super::*;

pub async fn three_expired_leases_set_a_unit_aside_with_its_causes(bench: Bench) {
    let at = filled(&bench, 1).await;
    for (attempt, worker) in (1..).zip(["a", "b", "c"]) {
        let held = lease(&bench, &at, worker, 1).await;
        assert_eq!(held[0].fence.attempt, attempt);
        bench.time.advance(LEASE).await;
        let reaped = bench.store.reap(&at, &Reap::Expired).await.unwrap();
        let expected: (&[UnitId], &[UnitId]) =
            if attempt < 3 { (&[UnitId(0)], &[]) } else { (&[], &[UnitId(0)]) };
        assert_eq!((reaped.requeued.as_slice(), reaped.dead.as_slice()), expected);
        assert!(!reaped.more);
    }
    assert_eq!(lease(&bench, &at, "d", 1).await, []);
    assert_eq!(places(&bench, &at).await, (0, 0, 1, 0));
    let letter = bench.store.dead_letter(&at, UnitId(0)).await.unwrap().unwrap();
    assert_eq!((letter.dialogues, letter.payload.as_slice()), (10, b"m 0".as_slice()));
    let strikes: Vec<_> =
        letter.strikes.iter().map(|s| (s.worker.as_str(), s.attempt, s.cause.as_str())).collect();
    assert_eq!(strikes, [("a", 1, "lease expired"), ("b", 2, "lease expired"), ("c", 3, "lease expired")]);
    assert!(letter.strikes.is_sorted_by_key(|strike| strike.at_ms));
}

pub async fn releasing_is_free(bench: Bench) {
    let at = filled(&bench, 1).await;
    for attempt in 1..=5 {
        let held = lease(&bench, &at, "a", 1).await;
        assert_eq!(held[0].fence.attempt, attempt);
        bench.store.release(&at, &fences(&held)).await.unwrap();
    }
    // Two strikes and a release between them are still two strikes.
    for expected in [Struck::Requeued, Struck::Requeued, Struck::Dead] {
        let held = lease(&bench, &at, "a", 1).await;
        bench.store.release(&at, &fences(&held)).await.unwrap();
        let held = lease(&bench, &at, "a", 1).await;
        let struck = bench.store.strike(&at, &held[0].fence, "out of memory").await.unwrap();
        assert_eq!(struck, expected);
    }
    let letter = bench.store.dead_letter(&at, UnitId(0)).await.unwrap().unwrap();
    assert!(letter.strikes.iter().all(|strike| strike.cause == "out of memory"));
    assert_eq!(letter.strikes.last().unwrap().attempt, 11);
}

pub async fn the_leases_of_a_dead_worker_go_at_once(bench: Bench) {
    let at = filled(&bench, 3).await;
    lease(&bench, &at, "a", 2).await;
    let other = lease(&bench, &at, "b", 1).await;
    let reaped = bench.store.reap(&at, &Reap::Worker("a".into())).await.unwrap();
    assert_eq!((reaped.requeued, reaped.dead), (vec![UnitId(0), UnitId(1)], vec![]));
    assert_eq!(bench.store.reap(&at, &Reap::Worker("a".into())).await.unwrap().requeued, []);
    assert_eq!(bench.store.finish(&at, &fences(&other)).await.unwrap(), [Transition::Applied]);
    assert_eq!(places(&bench, &at).await, (2, 0, 0, 1));
}

pub async fn reaping_is_bounded_and_says_when_more_is_left(bench: Bench) {
    let most = limits::MAX_REAPED_PER_MODEL as u64;
    let at = filled(&bench, most + 1).await;
    lease(&bench, &at, "a", limits::MAX_UNITS_PER_LEASE).await;
    lease(&bench, &at, "a", limits::MAX_UNITS_PER_LEASE).await;
    assert_eq!(places(&bench, &at).await.1, most + 1);
    bench.time.advance(LEASE).await;
    let reaped = bench.store.reap(&at, &Reap::Expired).await.unwrap();
    assert_eq!((reaped.requeued.len() as u64, reaped.more), (most, true));
    let reaped = bench.store.reap(&at, &Reap::Expired).await.unwrap();
    assert_eq!((reaped.requeued, reaped.more), (vec![UnitId(most)], false));
}

pub async fn dead_letters_are_paged_and_can_be_requeued(bench: Bench) {
    let at = bench.store.create_run(&RunSpec { max_strikes: 1, ..spec("r") }).await.unwrap().at;
    bench.store.add_units(&at, UnitId(0), &units("n", 2)).await.unwrap();
    bench.store.add_units(&at, UnitId(2), &units("m", 3)).await.unwrap();
    bench.store.lease(&at, &ask("a", &["m", "n"], 9)).await.unwrap();
    bench.store.reap(&at, &Reap::Worker("a".into())).await.unwrap();
    let page = |after, limit| {
        let (store, at) = (bench.store.clone(), at.clone());
        async move {
            let letters = store.dead_letters(&at, after, limit).await.unwrap();
            letters.into_iter().map(|letter| letter.unit.0).collect::<Vec<_>>()
        }
    };
    assert_eq!(page(None, 3).await, [0, 1, 2]);
    assert_eq!(page(Some(UnitId(2)), 3).await, [3, 4]);
    assert_eq!(page(Some(UnitId(4)), 3).await, [0; 0]);
    assert_eq!(page(None, 0).await, [0; 0]);
    assert_eq!(bench.store.requeue(&at, &[UnitId(3), UnitId(3), UnitId(99)]).await.unwrap(), 1);
    assert_eq!(page(None, 9).await, [0, 1, 2, 4]);
    assert_eq!(bench.store.dead_letter(&at, UnitId(3)).await.unwrap(), None);
    let again = lease(&bench, &at, "b", 9).await;
    assert_eq!(
        (again[0].fence.unit, again[0].fence.attempt, again[0].payload.as_slice()),
        (UnitId(3), 2, b"m 1".as_slice())
    );
    assert_eq!(places(&bench, &at).await, (0, 1, 2, 0));
    // With a clean slate: the next death is the first on its account.
    bench.store.strike(&at, &again[0].fence, "again").await.unwrap();
    let letter = bench.store.dead_letter(&at, UnitId(3)).await.unwrap().unwrap();
    assert_eq!(letter.strikes.len(), 1);
}

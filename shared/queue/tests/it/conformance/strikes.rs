//! Suspects, strikes, take-overs and dead letters.

use super::*;

pub async fn a_unit_that_kills_alone_is_set_aside_with_its_causes(bench: Bench) {
    let at = filled(&bench, 1).await;
    let unit = UnitId(0);
    // The first death is free, the second makes it a suspect; then it has the three strikes of the run.
    for (attempt, worker) in (1..).zip(["a", "b", "c", "d", "e"]) {
        let held = lease(&bench, &at, worker, 1).await;
        assert_eq!((held[0].fence.attempt, held[0].suspect), (attempt, attempt > 2));
        bench.time.advance(LEASE).await;
        let reaped = bench.store.reap(&at, &Reap::Expired).await.unwrap();
        let expected: [&[UnitId]; 4] = match attempt {
            1 => [&[unit], &[], &[], &[]],
            2 => [&[], &[unit], &[], &[]],
            3 | 4 => [&[], &[], &[unit], &[]],
            _ => [&[], &[], &[], &[unit]],
        };
        assert_eq!([&*reaped.returned, &*reaped.suspected, &*reaped.struck, &*reaped.dead], expected);
        assert!(!reaped.more);
        let seen = bench.store.suspect(&at, unit).await.unwrap();
        let seen = seen.map(|seen| (seen.deaths.len(), seen.dead));
        assert_eq!(seen, (attempt > 1).then_some((attempt as usize, attempt == 5)));
    }
    assert_eq!(lease(&bench, &at, "f", 1).await, []);
    assert_eq!(places(&bench, &at).await, (0, 0, 1, 0));
    let letter = bench.store.suspects(&at, true, None, 9).await.unwrap().remove(0);
    assert_eq!((letter.dialogues, letter.payload.as_slice()), (10, b"m 0".as_slice()));
    let deaths: Vec<_> =
        letter.deaths.iter().map(|d| (d.worker.as_str(), d.attempt, d.cause.as_str())).collect();
    let expired = "lease expired";
    let died = [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)];
    assert_eq!(deaths, died.map(|(worker, attempt)| (worker, attempt, expired)));
    assert!(letter.deaths.is_sorted_by_key(|death| death.at_ms));
    assert_eq!(bench.store.suspects(&at, false, None, 9).await.unwrap(), []);
}

pub async fn a_death_of_all_workers_at_once_suspects_no_unit(bench: Bench) {
    let at = filled(&bench, 6).await;
    let held: Vec<Vec<u64>> = [lease(&bench, &at, "a", 2).await, lease(&bench, &at, "b", 3).await]
        .iter()
        .map(|held| ids(held))
        .collect();
    assert_eq!(held, [vec![0, 1], vec![2, 3, 4]]);
    // One is started again, the other stays away.
    assert_eq!(die(&bench, &at, "a").await.returned, [UnitId(0), UnitId(1)]);
    bench.time.advance(LEASE).await;
    let reaped = bench.store.reap(&at, &Reap::Expired).await.unwrap();
    assert_eq!(reaped, Reaped { returned: vec![UnitId(2), UnitId(3), UnitId(4)], ..Reaped::default() });
    let counts = bench.store.counts(&at).await.unwrap();
    assert_eq!((counts[0].pending, counts[0].suspects_pending), (6, 0));
    assert_eq!(bench.store.suspects(&at, false, None, 9).await.unwrap(), []);
    // They go first, and not alone.
    let again = lease(&bench, &at, "c", 9).await;
    assert_eq!(ids(&again), [0, 1, 2, 3, 4, 5]);
    assert!(again.iter().all(|lease| !lease.suspect));
    bench.store.finish(&at, &fences(&again)).await.unwrap();
    assert_eq!(places(&bench, &at).await, (0, 0, 0, 6));
}

pub async fn a_lone_worker_finds_the_unit_that_kills_it(bench: Bench) {
    let at = filled(&bench, 5).await;
    // Unit 2 kills the only worker there is, which is started again each time.
    let mut deaths = 0;
    loop {
        let held = lease(&bench, &at, "only", 9).await;
        if held.is_empty() {
            break;
        }
        if ids(&held).contains(&2) {
            die(&bench, &at, "only").await;
            deaths += 1;
        } else {
            bench.store.finish(&at, &fences(&held)).await.unwrap();
        }
    }
    assert_eq!((deaths, places(&bench, &at).await), (5, (0, 0, 1, 4)));
}

pub async fn the_innocent_that_died_with_a_killer_are_cleared(bench: Bench) {
    let at = filled(&bench, 4).await;
    // Every worker that holds unit 2 dies.
    let mut finished = Vec::new();
    for life in 0..100 {
        let worker = format!("w{life}");
        let held = lease(&bench, &at, &worker, 3).await;
        if held.is_empty() {
            break;
        }
        if ids(&held).contains(&2) {
            die(&bench, &at, &worker).await;
        } else {
            bench.store.finish(&at, &fences(&held)).await.unwrap();
            finished.extend(ids(&held));
        }
    }
    finished.sort_unstable();
    assert_eq!(finished, [0, 1, 3]);
    let dead = bench.store.suspects(&at, true, None, 9).await.unwrap();
    assert_eq!(dead.iter().map(|suspect| suspect.unit).collect::<Vec<_>>(), [UnitId(2)]);
    assert_eq!(bench.store.suspects(&at, false, None, 9).await.unwrap(), []);
    assert_eq!(bench.store.suspect(&at, UnitId(0)).await.unwrap(), None);
}

pub async fn a_suspect_runs_alone_behind_all_others(bench: Bench) {
    let at = filled(&bench, 4).await;
    bench.store.add_units(&at, UnitId(4), &units("n", 1)).await.unwrap();
    let both = |worker: &str, max| ask(worker, &["m", "n"], max);
    for _ in 0..2 {
        assert_eq!(ids(&bench.store.lease(&at, &both("a", 2)).await.unwrap()), [0, 1]);
        die(&bench, &at, "a").await;
    }
    let counts = bench.store.counts(&at).await.unwrap();
    assert_eq!((counts[0].pending, counts[0].suspects_pending, counts[0].suspects_leased), (4, 2, 0));
    // The healthy ones first, those of other models too, however low the suspects' ids.
    let healthy = bench.store.lease(&at, &both("b", 9)).await.unwrap();
    assert_eq!(ids(&healthy), [2, 3, 4]);
    assert!(healthy.iter().all(|lease| !lease.suspect));
    // One that holds something, here or in another run, gets none; one that has room for many gets one.
    assert_eq!(bench.store.lease(&at, &both("b", 9)).await.unwrap(), []);
    let busy = LeaseRequest { alone: false, ..both("c", 9) };
    assert_eq!(bench.store.lease(&at, &busy).await.unwrap(), []);
    let alone = bench.store.lease(&at, &both("c", 9)).await.unwrap();
    assert_eq!((ids(&alone), alone[0].suspect, alone[0].fence.attempt), (vec![0], true, 3));
    let counts = bench.store.counts(&at).await.unwrap();
    assert_eq!((counts[0].pending, counts[0].suspects_pending, counts[0].suspects_leased), (1, 1, 1));
    // While it holds that, it gets nothing else.
    bench.store.release(&at, &fences(&healthy[..1])).await.unwrap();
    assert_eq!(bench.store.lease(&at, &both("c", 9)).await.unwrap(), []);
    let renewal = bench.store.renew(&at, &"c".into(), &["m".into()], &[]).await.unwrap();
    assert!(renewal.holds_suspect && renewal.unreported[0].suspect);
    assert!(!bench.store.renew(&at, &"b".into(), &[], &fences(&healthy[1..])).await.unwrap().holds_suspect);
    // Given back it is a suspect still; finished, no more.
    bench.store.release(&at, &fences(&alone)).await.unwrap();
    assert_eq!(ids(&bench.store.lease(&at, &both("c", 1)).await.unwrap()), [2]);
    let alone = bench.store.lease(&at, &both("d", 9)).await.unwrap();
    assert_eq!(ids(&alone), [0]);
    // The one with fewer deaths goes first.
    assert_eq!(die(&bench, &at, "d").await.struck, [UnitId(0)]);
    let next = bench.store.lease(&at, &both("d", 9)).await.unwrap();
    assert_eq!(ids(&next), [1]);
    assert_eq!(bench.store.finish(&at, &fences(&next)).await.unwrap(), [Transition::Applied]);
    let last = bench.store.lease(&at, &both("d", 9)).await.unwrap();
    assert_eq!((ids(&last), last[0].suspect), (vec![0], true));
    bench.store.finish(&at, &fences(&last)).await.unwrap();
    assert_eq!(bench.store.suspects(&at, false, None, 9).await.unwrap(), []);
    let counts = bench.store.counts(&at).await.unwrap();
    assert_eq!((counts[0].suspects_pending, counts[0].suspects_leased), (0, 0));
}

pub async fn releasing_is_free(bench: Bench) {
    let at = filled(&bench, 1).await;
    for attempt in 1..=5 {
        let held = lease(&bench, &at, "a", 1).await;
        assert_eq!((held[0].fence.attempt, held[0].suspect), (attempt, false));
        bench.store.release(&at, &fences(&held)).await.unwrap();
    }
    // Releases between deaths neither add strikes nor take them away.
    for dead in [false, false, false, false, true] {
        let held = lease(&bench, &at, "a", 1).await;
        bench.store.release(&at, &fences(&held)).await.unwrap();
        lease(&bench, &at, "a", 1).await;
        assert_eq!(die(&bench, &at, "a").await.dead.is_empty(), !dead);
    }
    let letter = bench.store.suspect(&at, UnitId(0)).await.unwrap().unwrap();
    assert!(letter.deaths.iter().all(|death| death.cause == "worker died"));
    assert_eq!(letter.deaths.last().unwrap().attempt, 15);
}

pub async fn the_leases_of_a_dead_worker_go_at_once(bench: Bench) {
    let at = filled(&bench, 3).await;
    lease(&bench, &at, "a", 2).await;
    let other = lease(&bench, &at, "b", 1).await;
    let reaped = bench.store.reap(&at, &Reap::Worker("a".into())).await.unwrap();
    assert_eq!((reaped.returned, reaped.dead), (vec![UnitId(0), UnitId(1)], vec![]));
    assert!(bench.store.reap(&at, &Reap::Worker("a".into())).await.unwrap().is_empty());
    assert_eq!(bench.store.finish(&at, &fences(&other)).await.unwrap(), [Transition::Applied]);
    assert_eq!(places(&bench, &at).await, (2, 0, 0, 1));
}

pub async fn reaping_is_bounded_and_says_when_more_is_left(bench: Bench) {
    let most = limits::REAPED_PER_MODEL_MAX as u64;
    let at = filled(&bench, most + 1).await;
    lease(&bench, &at, "a", limits::UNITS_PER_LEASE_MAX).await;
    lease(&bench, &at, "a", limits::UNITS_PER_LEASE_MAX).await;
    assert_eq!(places(&bench, &at).await.1, most + 1);
    bench.time.advance(LEASE).await;
    let reaped = bench.store.reap(&at, &Reap::Expired).await.unwrap();
    assert_eq!((reaped.returned.len() as u64, reaped.more), (most, true));
    let reaped = bench.store.reap(&at, &Reap::Expired).await.unwrap();
    assert_eq!((reaped.returned, reaped.more), (vec![UnitId(most)], false));
}

pub async fn dead_letters_are_paged_and_can_be_requeued(bench: Bench) {
    let at = bench.store.create_run(&RunSpec { max_strikes: 1, ..spec("r") }).await.unwrap().at;
    bench.store.add_units(&at, UnitId(0), &units("n", 2)).await.unwrap();
    bench.store.add_units(&at, UnitId(2), &units("m", 3)).await.unwrap();
    for _ in 0..2 {
        bench.store.lease(&at, &ask("a", &["m", "n"], 9)).await.unwrap();
        die(&bench, &at, "a").await;
    }
    let suspects = bench.store.suspects(&at, false, Some(UnitId(0)), 3).await.unwrap();
    let seen: Vec<_> = suspects.iter().map(|suspect| (suspect.unit.0, suspect.model.as_str())).collect();
    assert_eq!(seen, [(1, "n"), (2, "m"), (3, "m")]);
    for worker in ["b", "c", "d", "e", "f"] {
        assert_eq!(bench.store.lease(&at, &ask(worker, &["m", "n"], 9)).await.unwrap().len(), 1);
        assert_eq!(die(&bench, &at, worker).await.dead.len(), 1);
    }
    let page = |after, limit| {
        let (store, at) = (bench.store.clone(), at.clone());
        async move {
            let letters = store.suspects(&at, true, after, limit).await.unwrap();
            letters.into_iter().map(|letter| letter.unit.0).collect::<Vec<_>>()
        }
    };
    assert_eq!(page(None, 3).await, [0, 1, 2]);
    assert_eq!(page(Some(UnitId(2)), 3).await, [3, 4]);
    assert_eq!(page(Some(UnitId(4)), 3).await, [0; 0]);
    assert_eq!(page(None, 0).await, [0; 0]);
    assert_eq!(bench.store.requeue(&at, &[UnitId(3), UnitId(3), UnitId(99)]).await.unwrap(), 1);
    assert_eq!(page(None, 9).await, [0, 1, 2, 4]);
    assert_eq!(bench.store.suspect(&at, UnitId(3)).await.unwrap(), None);
    let again = lease(&bench, &at, "b", 9).await;
    let Lease { fence, payload, suspect, .. } = again[0].clone();
    assert_eq!((fence.unit, fence.attempt, payload.as_slice()), (UnitId(3), 4, b"m 1".as_slice()));
    assert_eq!(places(&bench, &at).await, (0, 1, 2, 0));
    // With a clean slate: the next death is the first on its account.
    assert!(!suspect);
    assert_eq!(die(&bench, &at, "b").await.returned, [UnitId(3)]);
    assert_eq!(bench.store.suspect(&at, UnitId(3)).await.unwrap(), None);
}

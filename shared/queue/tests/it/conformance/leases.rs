//! Units and leases: who gets what, who keeps it, who loses it.

use std::sync::Arc;

use super::*;

pub async fn units_are_added_once_whoever_adds_them(bench: Bench) {
    let at = bench.store.create_run(&spec("r")).await.unwrap().at;
    let plan: Vec<_> = units("m", 2).into_iter().chain(units("n", 2)).collect();
    let add = |first: u64, chunk: &[NewUnit]| {
        let (store, at, chunk) = (bench.store.clone(), at.clone(), chunk.to_vec());
        async move { store.add_units(&at, UnitId(first), &chunk).await.unwrap() }
    };
    assert!(add(0, &plan[..1]).await.applied);
    let repeated = add(0, &plan[..1]).await;
    assert!(!repeated.applied && repeated.next == UnitId(1));
    let beyond = add(3, &plan[3..]).await;
    assert!(!beyond.applied && beyond.next == UnitId(1));
    assert!(add(1, &plan[1..]).await.applied);
    let leases = bench.store.lease(&at, &ask("w", &["m", "n"], 9)).await.unwrap();
    assert_eq!(ids(&leases), [0, 1, 2, 3]);
    let payloads: Vec<_> = leases.into_iter().map(|lease| lease.payload).collect();
    assert_eq!(payloads, [b"m 0", b"m 1", b"n 0", b"n 1"]);
    assert!(add(4, &[]).await.applied);
}

pub async fn a_unit_has_one_holder_and_the_lowest_id_goes_first(bench: Bench) {
    let at = filled(&bench, 4).await;
    let first = lease(&bench, &at, "a", 2).await;
    let second = lease(&bench, &at, "b", 1).await;
    assert_eq!((ids(&first), ids(&second)), (vec![0, 1], vec![2]));
    assert!(first.iter().chain(&second).all(|lease| lease.fence.attempt == 1 && lease.dialogues == 10));
    // A returned unit goes before one that was never leased.
    bench.store.release(&at, &fences(&first[1..])).await.unwrap();
    let third = lease(&bench, &at, "b", 9).await;
    assert_eq!(ids(&third), [1, 3]);
    assert_eq!(third[0].fence.attempt, 2);
    assert_eq!(lease(&bench, &at, "c", 9).await, []);
    assert_eq!(places(&bench, &at).await, (0, 4, 0, 0));
}

pub async fn workers_get_the_models_they_serve_in_their_order(bench: Bench) {
    let at = filled(&bench, 3).await;
    bench.store.add_units(&at, UnitId(3), &units("n", 3)).await.unwrap();
    let lease = |models: &'static [&'static str], max| {
        let (store, at) = (bench.store.clone(), at.clone());
        async move { ids(&store.lease(&at, &ask("w", models, max)).await.unwrap()) }
    };
    assert_eq!(lease(&["n", "m"], 4).await, [3, 4, 5, 0]);
    assert_eq!(lease(&["n"], 4).await, [0; 0]);
    assert_eq!(lease(&["unknown", "m"], 0).await, [0; 0]);
    assert_eq!(lease(&["unknown", "m"], 1).await, [1]);
    assert_eq!(lease(&[], 4).await, [0; 0]);
}

pub async fn a_stale_fence_changes_nothing(bench: Bench) {
    let at = filled(&bench, 1).await;
    let old = lease(&bench, &at, "a", 1).await.remove(0).fence;
    assert_eq!(bench.store.release(&at, std::slice::from_ref(&old)).await.unwrap(), [Transition::Applied]);
    // Pending: nobody holds it.
    assert_eq!(bench.store.finish(&at, std::slice::from_ref(&old)).await.unwrap(), [Transition::Stale]);
    let new = lease(&bench, &at, "b", 1).await.remove(0).fence;
    assert_eq!(new.attempt, 2);
    let wrong = [
        old.clone(),
        Fence { attempt: 3, ..new.clone() },
        Fence { attempt: 0, ..new.clone() },
        Fence { generation: at.generation - 1, ..new.clone() },
        Fence { model: "n".into(), ..new.clone() },
        Fence { unit: UnitId(7), ..new.clone() },
    ];
    assert_eq!(bench.store.finish(&at, &wrong).await.unwrap(), [Transition::Stale; 6]);
    assert_eq!(bench.store.release(&at, &wrong).await.unwrap(), [Transition::Stale; 6]);
    let renewal = bench.store.renew(&at, &"a".into(), &[], &wrong).await.unwrap();
    assert_eq!((renewal.lost.as_slice(), renewal.unreported.as_slice()), (wrong.as_slice(), [].as_slice()));
    // The right fence with the wrong worker's name renews nothing either.
    let renewal = bench.store.renew(&at, &"a".into(), &[], std::slice::from_ref(&new)).await.unwrap();
    assert_eq!(renewal.lost, std::slice::from_ref(&new));
    assert_eq!(places(&bench, &at).await, (0, 1, 0, 0));
    let both = [new.clone(), new];
    assert_eq!(bench.store.finish(&at, &both).await.unwrap(), [Transition::Applied, Transition::Stale]);
    assert_eq!(places(&bench, &at).await, (0, 0, 0, 1));
}

pub async fn renewal_keeps_leases_and_tells_what_was_lost(bench: Bench) {
    let at = filled(&bench, 3).await;
    let held = lease(&bench, &at, "a", 3).await;
    bench.time.advance(STEP).await;
    // The worker knows of two: the answer that brought the third is taken as lost.
    let reported = fences(&held[..2]);
    let renewal = bench.store.renew(&at, &"a".into(), &["m".into()], &reported).await.unwrap();
    assert_eq!((renewal.state, renewal.lost.as_slice()), (RunState::Active, [].as_slice()));
    assert_eq!(fences(&renewal.unreported), fences(&held[2..]));
    assert_eq!(renewal.unreported[0].payload, held[2].payload);
    assert!(renewal.deadline_ms > held[0].deadline_ms);
    bench.time.advance(STEP).await;
    // 80 minutes after the lease, 40 after its renewal.
    assert_eq!(bench.store.reap(&at, &Reap::Expired).await.unwrap().returned, []);
    bench.store.renew(&at, &"a".into(), &[], &reported[..1]).await.unwrap();
    // The models of the fences count as well: all three were renewed.
    bench.time.advance(STEP).await;
    assert_eq!(bench.store.reap(&at, &Reap::Expired).await.unwrap().returned, []);
    bench.time.advance(STEP).await;
    let reaped = bench.store.reap(&at, &Reap::Expired).await.unwrap();
    assert_eq!(reaped.returned, [UnitId(0), UnitId(1), UnitId(2)]);
    let renewal = bench.store.renew(&at, &"a".into(), &["m".into()], &reported).await.unwrap();
    assert_eq!((renewal.lost, renewal.unreported.len()), (reported, 0));
}

pub async fn a_late_worker_keeps_its_lease_until_somebody_takes_over(bench: Bench) {
    let at = filled(&bench, 2).await;
    let held = lease(&bench, &at, "a", 2).await;
    bench.time.advance(LEASE + STEP).await;
    let renewal = bench.store.renew(&at, &"a".into(), &[], &fences(&held[..1])).await.unwrap();
    assert_eq!(renewal.lost, []);
    assert_eq!(bench.store.reap(&at, &Reap::Expired).await.unwrap().returned, []);
    bench.time.advance(LEASE + STEP).await;
    assert_eq!(bench.store.finish(&at, &fences(&held[1..])).await.unwrap(), [Transition::Applied]);
    assert_eq!(bench.store.reap(&at, &Reap::Expired).await.unwrap().returned, [UnitId(0)]);
    assert_eq!(bench.store.finish(&at, &fences(&held[..1])).await.unwrap(), [Transition::Stale]);
}

pub async fn concurrent_callers_never_share_a_unit(bench: Bench) {
    let at = filled(&bench, 60).await;
    let work = |worker: String| {
        let (store, at): (Arc<dyn QueueStore>, _) = (bench.store.clone(), at.clone());
        async move {
            let mut done = Vec::new();
            loop {
                let leases = store.lease(&at, &ask(&worker, &["m"], 3)).await.unwrap();
                if leases.is_empty() {
                    return done;
                }
                assert!(
                    store
                        .finish(&at, &fences(&leases))
                        .await
                        .unwrap()
                        .iter()
                        .all(|t| *t == Transition::Applied)
                );
                done.extend(ids(&leases));
            }
        }
    };
    let all = futures::future::join_all((0..6).map(|i| work(format!("w{i}")))).await;
    let mut all: Vec<_> = all.into_iter().flatten().collect();
    all.sort_unstable();
    assert_eq!(all, (0..60).collect::<Vec<_>>());
    assert_eq!(places(&bench, &at).await, (0, 0, 0, 60));
}

pub async fn a_parked_model_waits_while_the_others_go_on(bench: Bench) {
    let at = filled(&bench, 2).await;
    bench.store.add_units(&at, UnitId(2), &units("n", 1)).await.unwrap();
    let held = lease(&bench, &at, "a", 1).await;
    bench.store.park(&at, &"m".into(), LEASE, "daily quota used up").await.unwrap();
    let leases = bench.store.lease(&at, &ask("b", &["m", "n"], 9)).await.unwrap();
    assert_eq!(ids(&leases), [2]);
    let counts = bench.store.counts(&at).await.unwrap();
    assert_eq!(counts[0].parked.as_ref().unwrap().reason, "daily quota used up");
    assert_eq!(counts[1].parked, None);
    assert_eq!(bench.store.finish(&at, &fences(&held)).await.unwrap(), [Transition::Applied]);
    bench.time.advance(STEP).await;
    assert_eq!(lease(&bench, &at, "b", 1).await, []);
    bench.time.advance(STEP).await;
    assert_eq!(bench.store.counts(&at).await.unwrap()[0].parked, None);
    let freed = lease(&bench, &at, "b", 1).await;
    assert_eq!(ids(&freed), [1]);
    bench.store.release(&at, &fences(&freed)).await.unwrap();
    bench.store.park(&at, &"m".into(), LEASE, "again").await.unwrap();
    assert_eq!(lease(&bench, &at, "b", 1).await, []);
    bench.store.unpark(&at, &"m".into()).await.unwrap();
    bench.store.unpark(&at, &"unknown".into()).await.unwrap();
    assert_eq!(lease(&bench, &at, "b", 1).await.len(), 1);
}

pub async fn counts_add_up(bench: Bench) {
    let at = bench.store.create_run(&RunSpec { max_strikes: 1, ..spec("r") }).await.unwrap().at;
    assert_eq!(bench.store.counts(&at).await.unwrap(), []);
    let sized = |dialogues| NewUnit { model: "m".into(), dialogues, payload: vec![] };
    let sizes: Vec<_> = [10, 8, 4, 2, 1].into_iter().map(sized).collect();
    bench.store.add_units(&at, UnitId(0), &sizes).await.unwrap();
    let held = lease(&bench, &at, "a", 3).await;
    bench.store.finish(&at, &fences(&held[..1])).await.unwrap();
    bench.store.release(&at, &fences(&held[2..])).await.unwrap();
    assert_eq!(die(&bench, &at, "a").await.returned, [UnitId(1)]);
    lease(&bench, &at, "a", 1).await;
    assert_eq!(die(&bench, &at, "a").await.suspected, [UnitId(1)]);
    let rest = lease(&bench, &at, "b", 9).await;
    lease(&bench, &at, "c", 1).await;
    assert_eq!(die(&bench, &at, "c").await.dead, [UnitId(1)]);
    bench.store.release(&at, &fences(&rest[1..])).await.unwrap();
    let counts = bench.store.counts(&at).await.unwrap().remove(0);
    assert_eq!((counts.added, counts.pending, counts.leased, counts.dead, counts.done), (5, 2, 1, 1, 1));
    assert_eq!(counts.backlog_dialogues, 4 + 2 + 1);
    bench.store.requeue(&at, &[UnitId(1)]).await.unwrap();
    let counts = bench.store.counts(&at).await.unwrap().remove(0);
    assert_eq!((counts.pending, counts.dead, counts.backlog_dialogues), (3, 0, 8 + 4 + 2 + 1));
}

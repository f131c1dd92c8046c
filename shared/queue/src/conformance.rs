//! One suite for every store. A backend's test file stamps it with [`conformance_suite!`](crate::conformance_suite).
//!
//! Every test gets a fresh [`Bench`]. Leases last an hour of the store's time, which the test moves in steps of
//! forty minutes, so that the milliseconds which a real server's clock adds never decide an outcome.

#![expect(clippy::unwrap_used, reason = "this is a test, compiled as a library so that others can use it")]

use std::sync::Arc;
use std::time::Duration;

use domain::{DialogueKey, ModelLabel, RunId, TaskLabel, WorkerId};

use crate::testing::{Bench, block_on};
use crate::{
    Commit, Committed, Error, Fence, Lease, LeaseRequest, NewUnit, Orders, QueueStore, Rate, RateReply, Reap,
    RunRef, RunSpec, RunState, Struck, Transition, UnitId, Verdict, limits,
};

/// Stamps the suite onto a store: `conformance_suite!(open)` with `async fn open() -> Option<Bench>`, `None` where
/// the store cannot be had on this machine (say so aloud).
#[macro_export]
macro_rules! conformance_suite {
    ($open:path) => {
        $crate::conformance_suite!($open;
            creating_a_run_again_joins_it,
            a_rebuilt_run_has_a_higher_generation_and_refuses_the_old_one,
            every_operation_on_a_forgotten_run_says_so,
            units_are_added_once_whoever_adds_them,
            a_unit_has_one_holder_and_the_lowest_id_goes_first,
            workers_get_the_models_they_serve_in_their_order,
            a_stale_fence_changes_nothing,
            renewal_keeps_leases_and_tells_what_was_lost,
            a_late_worker_keeps_its_lease_until_somebody_takes_over,
            three_expired_leases_set_a_unit_aside_with_its_causes,
            releasing_is_free,
            the_leases_of_a_dead_worker_go_at_once,
            reaping_is_bounded_and_says_when_more_is_left,
            dead_letters_are_paged_and_can_be_requeued,
            only_an_active_run_leases_and_states_follow_their_rules,
            tickets_rise_for_ever,
            the_winner_of_a_dialogue_does_not_depend_on_the_order_of_commits,
            a_parked_model_waits_while_the_others_go_on,
            counts_add_up,
            workers_come_go_and_drain,
            a_rate_budget_is_shared,
            names_and_payloads_of_any_shape_stay_apart,
            runs_do_not_touch_each_other,
            what_exceeds_a_limit_is_refused,
            concurrent_callers_never_share_a_unit,
        );
    };
    ($open:path; $($name:ident),* $(,)?) => { $(
        #[test]
        fn $name() {
            $crate::conformance::run($open, $crate::conformance::$name);
        }
    )* };
}

/// Runs one test of the suite.
pub fn run<O, T>(open: impl FnOnce() -> O, test: impl FnOnce(Bench) -> T)
where
    O: Future<Output = Option<Bench>>,
    T: Future<Output = ()>,
{
    block_on(async {
        if let Some(bench) = open().await {
            test(bench).await;
        }
    });
}

const LEASE: Duration = Duration::from_secs(3_600);
const STEP: Duration = Duration::from_secs(2_400);

fn spec(run: &str) -> RunSpec {
    RunSpec {
        run: RunId::new(run),
        plan_hash: "plan-1".into(),
        lease_for: LEASE,
        max_strikes: 3,
        generation_floor: 0,
        ticket_floor: 0,
    }
}

fn units(model: &str, count: u64) -> Vec<NewUnit> {
    let unit =
        |i: u64| NewUnit { model: model.into(), dialogues: 10, payload: format!("{model} {i}").into_bytes() };
    (0..count).map(unit).collect()
}

fn ask(worker: &str, models: &[&str], max_units: u32) -> LeaseRequest {
    let models = models.iter().map(|model| ModelLabel::new(*model)).collect();
    LeaseRequest { worker: worker.into(), models, max_units }
}

fn key(model: &str, task: &str, iteration: u32) -> DialogueKey {
    DialogueKey { model: model.into(), task: TaskLabel::new(task), iteration }
}

fn ids(leases: &[Lease]) -> Vec<u64> {
    leases.iter().map(|lease| lease.fence.unit.0).collect()
}

fn fences(leases: &[Lease]) -> Vec<Fence> {
    leases.iter().map(|lease| lease.fence.clone()).collect()
}

/// A run `r` with `count` units of model `m`.
async fn filled(bench: &Bench, count: u64) -> RunRef {
    let at = bench.store.create_run(&spec("r")).await.unwrap().at;
    let added = bench.store.add_units(&at, UnitId(0), &units("m", count)).await.unwrap();
    assert!(added.applied && added.next == UnitId(count));
    at
}

async fn lease(bench: &Bench, at: &RunRef, worker: &str, max_units: u32) -> Vec<Lease> {
    bench.store.lease(at, &ask(worker, &["m"], max_units)).await.unwrap()
}

/// pending, leased, dead, done of model `m`.
async fn places(bench: &Bench, at: &RunRef) -> (u64, u64, u64, u64) {
    let counts = bench.store.counts(at).await.unwrap();
    let m = counts.iter().find(|counts| counts.model.as_str() == "m").expect("model m");
    (m.pending, m.leased, m.dead, m.done)
}

#[expect(missing_docs, reason = "the names of the tests say it all")]
mod suite {
    use super::*;

    pub async fn creating_a_run_again_joins_it(bench: Bench) {
        let first = bench.store.create_run(&spec("r")).await.unwrap();
        assert_eq!((first.state, first.next_unit), (RunState::Active, UnitId(0)));
        assert_eq!((first.lease_for, first.max_strikes, first.plan_hash.as_str()), (LEASE, 3, "plan-1"));
        bench.store.add_units(&first.at, UnitId(0), &units("m", 2)).await.unwrap();
        let again = bench.store.create_run(&spec("r")).await.unwrap();
        assert_eq!((again.at, again.next_unit), (first.at.clone(), UnitId(2)));
        let other = RunSpec { plan_hash: "plan-2".into(), ..spec("r") };
        let refused = bench.store.create_run(&other).await.unwrap_err();
        assert!(
            matches!(&refused, Error::PlanMismatch { existing, given, .. } if existing == "plan-1" && given == "plan-2")
        );
        assert_eq!(bench.store.run(&"r".into()).await.unwrap().unwrap().next_unit, UnitId(2));
        assert_eq!(bench.store.run(&"unknown".into()).await.unwrap(), None);
        bench.store.create_run(&spec("a")).await.unwrap();
        let names: Vec<_> = bench.store.runs().await.unwrap().into_iter().map(|run| run.at.run).collect();
        assert_eq!(names, [RunId::new("a"), RunId::new("r")]);
    }

    pub async fn a_rebuilt_run_has_a_higher_generation_and_refuses_the_old_one(bench: Bench) {
        let old = filled(&bench, 1).await;
        let held = lease(&bench, &old, "w", 1).await;
        assert!(bench.store.forget_run(&old.run).await.unwrap());
        let floor = RunSpec { generation_floor: old.generation, ..spec("r") };
        let new = bench.store.create_run(&floor).await.unwrap().at;
        assert!(new.generation > old.generation);
        let refused = bench.store.lease(&old, &ask("w", &["m"], 1)).await.unwrap_err();
        assert!(matches!(refused, Error::StaleGeneration { given, current, .. }
            if given == old.generation && current == new.generation));
        // The same unit, the same attempt, another generation: not the same lease.
        bench.store.add_units(&new, UnitId(0), &units("m", 1)).await.unwrap();
        assert_eq!(lease(&bench, &new, "w", 1).await.len(), 1);
        assert_eq!(bench.store.finish(&new, &fences(&held)).await.unwrap(), [Transition::Stale]);
        let renewal = bench.store.renew(&new, &"w".into(), &[], &fences(&held)).await.unwrap();
        assert_eq!((renewal.lost, renewal.unreported.len()), (fences(&held), 1));
        // A run that only its records remember starts above them.
        let far = u64::MAX >> 12;
        let remembered = RunSpec { generation_floor: far, ..spec("s") };
        assert!(bench.store.create_run(&remembered).await.unwrap().at.generation > far);
    }

    pub async fn every_operation_on_a_forgotten_run_says_so(bench: Bench) {
        let at = filled(&bench, 1).await;
        let fence = lease(&bench, &at, "w", 1).await.remove(0).fence;
        let record = Committed { scored: true, ticket: 1 };
        bench.store.commit(&at, &[Commit { key: key("m", "t", 0), record }]).await.unwrap();
        bench.store.forget_run(&at.run).await.unwrap();
        assert!(!bench.store.forget_run(&at.run).await.unwrap());
        let (store, m) = (&bench.store, ModelLabel::new("m"));
        let errors = [
            store.set_state(&at, RunState::Paused).await.err(),
            store.add_units(&at, UnitId(0), &units("m", 1)).await.err(),
            store.lease(&at, &ask("w", &["m"], 1)).await.err(),
            store.renew(&at, &"w".into(), &[], std::slice::from_ref(&fence)).await.err(),
            store.release(&at, std::slice::from_ref(&fence)).await.err(),
            store.strike(&at, &fence, "died").await.err(),
            store.finish(&at, std::slice::from_ref(&fence)).await.err(),
            store.reap(&at, &Reap::Expired).await.err(),
            store.tickets(&at, 1).await.err(),
            store.commit(&at, &[Commit { key: key("m", "t", 0), record }]).await.err(),
            store.committed(&at, &[key("m", "t", 0)]).await.err(),
            store.counts(&at).await.err(),
            store.dead_letters(&at, None, 1).await.err(),
            store.dead_letter(&at, UnitId(0)).await.err(),
            store.requeue(&at, &[UnitId(0)]).await.err(),
            store.park(&at, &m, LEASE, "quota").await.err(),
            store.unpark(&at, &m).await.err(),
        ];
        for (index, error) in errors.into_iter().enumerate() {
            assert!(matches!(error, Some(Error::RunGone { .. })), "operation {index}: {error:?}");
        }
        // Nothing of the run's first life is left in its second.
        let again = store.create_run(&spec("r")).await.unwrap().at;
        assert_eq!(store.counts(&again).await.unwrap(), []);
        assert_eq!(store.committed(&again, &[key("m", "t", 0)]).await.unwrap(), [None]);
        assert_eq!(lease(&bench, &again, "w", 1).await, []);
    }

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
        assert_eq!(
            bench.store.release(&at, std::slice::from_ref(&old)).await.unwrap(),
            [Transition::Applied]
        );
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
        for fence in &wrong {
            assert_eq!(bench.store.strike(&at, fence, "died").await.unwrap(), Struck::Stale);
        }
        let renewal = bench.store.renew(&at, &"a".into(), &[], &wrong).await.unwrap();
        assert_eq!(
            (renewal.lost.as_slice(), renewal.unreported.as_slice()),
            (wrong.as_slice(), [].as_slice())
        );
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
        assert_eq!(bench.store.reap(&at, &Reap::Expired).await.unwrap().requeued, []);
        bench.store.renew(&at, &"a".into(), &[], &reported[..1]).await.unwrap();
        // The models of the fences count as well: all three were renewed.
        bench.time.advance(STEP).await;
        assert_eq!(bench.store.reap(&at, &Reap::Expired).await.unwrap().requeued, []);
        bench.time.advance(STEP).await;
        let reaped = bench.store.reap(&at, &Reap::Expired).await.unwrap();
        assert_eq!(reaped.requeued, [UnitId(0), UnitId(1), UnitId(2)]);
        let renewal = bench.store.renew(&at, &"a".into(), &["m".into()], &reported).await.unwrap();
        assert_eq!((renewal.lost, renewal.unreported.len()), (reported, 0));
    }

    pub async fn a_late_worker_keeps_its_lease_until_somebody_takes_over(bench: Bench) {
        let at = filled(&bench, 2).await;
        let held = lease(&bench, &at, "a", 2).await;
        bench.time.advance(LEASE + STEP).await;
        let renewal = bench.store.renew(&at, &"a".into(), &[], &fences(&held[..1])).await.unwrap();
        assert_eq!(renewal.lost, []);
        assert_eq!(bench.store.reap(&at, &Reap::Expired).await.unwrap().requeued, []);
        bench.time.advance(LEASE + STEP).await;
        assert_eq!(bench.store.finish(&at, &fences(&held[1..])).await.unwrap(), [Transition::Applied]);
        assert_eq!(bench.store.reap(&at, &Reap::Expired).await.unwrap().requeued, [UnitId(0)]);
        assert_eq!(bench.store.finish(&at, &fences(&held[..1])).await.unwrap(), [Transition::Stale]);
    }

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
        assert_eq!(
            strikes,
            [("a", 1, "lease expired"), ("b", 2, "lease expired"), ("c", 3, "lease expired")]
        );
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

    pub async fn only_an_active_run_leases_and_states_follow_their_rules(bench: Bench) {
        let at = filled(&bench, 2).await;
        let held = lease(&bench, &at, "a", 1).await;
        for state in
            [RunState::Paused, RunState::Cancelled, RunState::Active, RunState::Finished, RunState::Active]
        {
            let before = bench.store.run(&at.run).await.unwrap().unwrap().state;
            assert_eq!(bench.store.set_state(&at, state).await.unwrap(), before);
            assert_eq!(bench.store.set_state(&at, state).await.unwrap(), state);
            let renewal = bench.store.renew(&at, &"a".into(), &[], &fences(&held)).await.unwrap();
            assert_eq!((renewal.state, renewal.lost.as_slice()), (state, [].as_slice()));
            let leases = lease(&bench, &at, "b", 1).await;
            assert_eq!(leases.len(), usize::from(state == RunState::Active));
            bench.store.release(&at, &fences(&leases)).await.unwrap();
        }
        bench.store.set_state(&at, RunState::Finished).await.unwrap();
        let refused = bench.store.set_state(&at, RunState::Paused).await.unwrap_err();
        assert!(matches!(
            refused,
            Error::IllegalState { from: RunState::Finished, to: RunState::Paused, .. }
        ));
        // What was leased before still ends well.
        assert_eq!(bench.store.finish(&at, &fences(&held)).await.unwrap(), [Transition::Applied]);
    }

    pub async fn tickets_rise_for_ever(bench: Bench) {
        let at = filled(&bench, 0).await;
        let first = bench.store.tickets(&at, 3).await.unwrap();
        assert_eq!(first.end - first.start, 3);
        let second = bench.store.tickets(&at, 1_000).await.unwrap();
        assert!(second.start >= first.end && second.end - second.start == 1_000);
        bench.time.advance(STEP).await;
        // Not even a queue that lost everything, and whose log ends early, goes back.
        bench.store.forget_run(&at.run).await.unwrap();
        let at = bench.store.create_run(&spec("r")).await.unwrap().at;
        let third = bench.store.tickets(&at, 1).await.unwrap();
        assert!(third.start >= second.end, "{third:?} after {second:?}");
        let ahead = RunSpec { ticket_floor: third.start * 2, ..spec("s") };
        let at = bench.store.create_run(&ahead).await.unwrap().at;
        assert_eq!(bench.store.tickets(&at, 1).await.unwrap().start, third.start * 2 + 1);
        assert_eq!(bench.store.tickets(&at, 1).await.unwrap().start, third.start * 2 + 2);
    }

    pub async fn the_winner_of_a_dialogue_does_not_depend_on_the_order_of_commits(bench: Bench) {
        let at = filled(&bench, 0).await;
        let record = |scored, ticket| Committed { scored, ticket };
        let commit = |iteration, scored, ticket| Commit {
            key: key("m", "t", iteration),
            record: record(scored, ticket),
        };
        let batch = [
            commit(0, false, 1),
            commit(1, true, 2),
            commit(0, true, 3),  // scored over failed
            commit(0, false, 1), // what was superseded stays so
            commit(1, true, 2),  // the same call again
            commit(1, true, 9),  // a later ticket
            commit(1, false, 0), // a failure never displaces a score
            commit(0, true, 2),  // an earlier ticket that was committed later
            commit(1_000_000, false, 7),
        ];
        let expected = [
            Verdict::First,
            Verdict::First,
            Verdict::Supersedes(record(false, 1)),
            Verdict::Loses(record(true, 3)),
            Verdict::Repeated,
            Verdict::Loses(record(true, 2)),
            Verdict::Loses(record(true, 2)),
            Verdict::Supersedes(record(true, 3)),
            Verdict::First,
        ];
        assert_eq!(bench.store.commit(&at, &batch).await.unwrap(), expected);
        let keys = [
            key("m", "t", 0),
            key("m", "t", 1),
            key("m", "t", 2),
            key("m", "t", 1_000_000),
            key("n", "t", 0),
        ];
        let standing = bench.store.committed(&at, &keys).await.unwrap();
        let (a, b, c) = (record(true, 2), record(true, 2), record(false, 7));
        assert_eq!(standing, [Some(a), Some(b), None, Some(c), None]);
        let counts = bench.store.counts(&at).await.unwrap();
        assert_eq!((counts[0].scored, counts[0].failed), (2, 1));
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
        bench.store.strike(&at, &held[1].fence, "died").await.unwrap();
        let counts = bench.store.counts(&at).await.unwrap().remove(0);
        assert_eq!((counts.added, counts.pending, counts.leased, counts.dead, counts.done), (5, 2, 1, 1, 1));
        assert_eq!(counts.backlog_dialogues, 4 + 2 + 1);
        bench.store.requeue(&at, &[UnitId(1)]).await.unwrap();
        let counts = bench.store.counts(&at).await.unwrap().remove(0);
        assert_eq!((counts.pending, counts.dead, counts.backlog_dialogues), (3, 0, 8 + 4 + 2 + 1));
    }

    pub async fn workers_come_go_and_drain(bench: Bench) {
        let (a, b) = (WorkerId::new("a"), WorkerId::new("b"));
        let orders = bench.store.heartbeat(&b, b"\x00\xff", LEASE).await.unwrap();
        assert_eq!(orders, Orders { drain: false });
        bench.store.heartbeat(&a, b"one", LEASE).await.unwrap();
        let workers = bench.store.workers().await.unwrap();
        let seen: Vec<_> =
            workers.iter().map(|w| (w.worker.as_str(), w.info.as_slice(), w.draining)).collect();
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

    pub async fn names_and_payloads_of_any_shape_stay_apart(bench: Bench) {
        let odd = [
            "a:b",
            "a",
            "b",
            "1:a",
            "*",
            "{x}",
            "model with spaces",
            "模型",
            "a\u{202e}b",
            "'; DROP TABLE units",
        ];
        let at = bench.store.create_run(&spec("run: [1] *")).await.unwrap().at;
        let payload = |i: u8| vec![0, 255, b'\n', i];
        let unit =
            |(i, model): (u8, &&str)| NewUnit { model: (*model).into(), dialogues: 1, payload: payload(i) };
        let plan: Vec<_> = (0..).zip(&odd).map(unit).collect();
        bench.store.add_units(&at, UnitId(0), &plan).await.unwrap();
        for (i, model) in (0..).zip(odd) {
            let leases = bench.store.lease(&at, &ask(model, &[model], 9)).await.unwrap();
            assert_eq!(leases.len(), 1, "{model}");
            assert_eq!((leases[0].fence.model.as_str(), &leases[0].payload), (model, &payload(i)));
            let renewal = bench.store.renew(&at, &model.into(), &[], &fences(&leases)).await.unwrap();
            assert_eq!((renewal.lost.len(), renewal.unreported.len()), (0, 0));
        }
        let commit = |key, ticket| Commit { key, record: Committed { scored: true, ticket } };
        let batch =
            [commit(key("a:b", "c", 1), 1), commit(key("a", "b:c", 1), 2), commit(key("a:b:c", "1", 1), 3)];
        assert_eq!(bench.store.commit(&at, &batch).await.unwrap(), [Verdict::First; 3]);
        assert_eq!(bench.store.counts(&at).await.unwrap().len(), odd.len() + 1);
        let cause = "said \"no\"\n\u{0}\\ {}";
        let fence = Fence { generation: at.generation, model: "a".into(), unit: UnitId(1), attempt: 1 };
        bench.store.strike(&at, &fence, cause).await.unwrap();
        bench
            .store
            .strike(&at, &bench.store.lease(&at, &ask("w", &["a"], 1)).await.unwrap()[0].fence, cause)
            .await
            .unwrap();
        bench
            .store
            .strike(&at, &bench.store.lease(&at, &ask("w", &["a"], 1)).await.unwrap()[0].fence, cause)
            .await
            .unwrap();
        let letter = bench.store.dead_letter(&at, UnitId(1)).await.unwrap().unwrap();
        assert!(letter.strikes.len() == 3 && letter.strikes.iter().all(|strike| strike.cause == cause));
    }

    pub async fn runs_do_not_touch_each_other(bench: Bench) {
        let at = filled(&bench, 2).await;
        let other = bench.store.create_run(&spec("r2")).await.unwrap().at;
        bench.store.add_units(&other, UnitId(0), &units("m", 1)).await.unwrap();
        let held = bench.store.lease(&other, &ask("a", &["m"], 9)).await.unwrap();
        assert_eq!(ids(&held), [0]);
        let commit = Commit { key: key("m", "t", 0), record: Committed { scored: true, ticket: 1 } };
        bench.store.commit(&other, std::slice::from_ref(&commit)).await.unwrap();
        bench.store.set_state(&other, RunState::Paused).await.unwrap();
        bench.store.park(&other, &"m".into(), LEASE, "quota").await.unwrap();
        assert_eq!(bench.store.committed(&at, std::slice::from_ref(&commit.key)).await.unwrap(), [None]);
        assert_eq!(lease(&bench, &at, "a", 9).await.len(), 2);
        bench.store.forget_run(&at.run).await.unwrap();
        assert_eq!(bench.store.finish(&other, &fences(&held)).await.unwrap(), [Transition::Applied]);
        assert_eq!(bench.store.committed(&other, &[commit.key]).await.unwrap(), [Some(commit.record)]);
    }

    pub async fn what_exceeds_a_limit_is_refused(bench: Bench) {
        let at = filled(&bench, 1).await;
        let store = &bench.store;
        let big =
            NewUnit { model: "m".into(), dialogues: 1, payload: vec![0; limits::MAX_PAYLOAD_BYTES + 1] };
        let empty = NewUnit { model: "m".into(), dialogues: 0, payload: vec![] };
        let nameless = NewUnit { model: "".into(), dialogues: 1, payload: vec![] };
        let many = units("m", limits::MAX_UNITS_PER_ADD as u64 + 1);
        let rate = Rate { per_minute: 60, burst: 2 };
        let refused = [
            store.create_run(&spec("brace{d}")).await.err(),
            store.create_run(&RunSpec { lease_for: Duration::ZERO, ..spec("s") }).await.err(),
            store.create_run(&RunSpec { max_strikes: 0, ..spec("s") }).await.err(),
            store.add_units(&at, UnitId(1), &[big]).await.err(),
            store.add_units(&at, UnitId(1), &[empty]).await.err(),
            store.add_units(&at, UnitId(1), &[nameless]).await.err(),
            store.add_units(&at, UnitId(1), &many).await.err(),
            store.lease(&at, &ask("w", &["m"], limits::MAX_UNITS_PER_LEASE + 1)).await.err(),
            store.lease(&at, &ask("", &["m"], 1)).await.err(),
            store
                .finish(
                    &at,
                    &[Fence {
                        generation: at.generation,
                        model: "m".into(),
                        unit: UnitId(u64::MAX),
                        attempt: 1,
                    }],
                )
                .await
                .err(),
            store.requeue(&at, &[UnitId(u64::MAX)]).await.err(),
            store.create_run(&RunSpec { ticket_floor: u64::MAX, ..spec("s") }).await.err(),
            store.tickets(&at, 0).await.err(),
            store.tickets(&at, limits::MAX_COMMITS_PER_CALL as u32 + 1).await.err(),
            store.dead_letters(&at, None, limits::MAX_DEAD_LETTERS_PER_PAGE + 1).await.err(),
            store.heartbeat(&"w".into(), &[0; limits::MAX_WORKER_INFO_BYTES + 1], LEASE).await.err(),
            store.take_rate("b", rate, 3).await.err(),
            store.take_rate("b", Rate { per_minute: 0, ..rate }, 1).await.err(),
        ];
        for (index, error) in refused.into_iter().enumerate() {
            assert!(matches!(error, Some(Error::Invalid { .. })), "input {index}: {error:?}");
        }
        assert_eq!(store.run(&at.run).await.unwrap().unwrap().next_unit, UnitId(1));
        // A long cause is cut rather than refused: the strike matters more than its words.
        let held = lease(&bench, &at, "w", 1).await;
        let cause = "x".repeat(limits::MAX_CAUSE_BYTES + 1);
        assert_eq!(store.strike(&at, &held[0].fence, &cause).await.unwrap(), Struck::Requeued);
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
}

pub use suite::*;

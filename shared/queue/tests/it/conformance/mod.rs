//! One suite for every store. A store's test file instantiates it with
//! [`conformance_suite!`].
//!
//! Every test gets a fresh [`Bench`]. Leases last an hour of the store's time, which the test moves in steps of forty
//! minutes, so that the milliseconds added by a real server's clock never decide a test.

mod leases;
mod runs;
mod shared;
mod strikes;

use std::time::Duration;

use domain::{InstanceId, ModelLabel, RunId, WorkerId};

use queue::testing::{Bench, block_on};
use queue::{
    Claim, Error, Fence, Heartbeat, HeartbeatOrders, Lease, LeaseRequest, NewUnit, QueueOwner, QueueStore,
    RateLimit, RateReply, Reap, Reaped, RunRef, RunSpec, RunState, Transition, UnitId, WorkerNameTaken,
    limits,
};

/// Instantiates the suite for a store: `conformance_suite!(open)` with `async fn open() -> Option<Bench>`, which
/// returns `None`, with a message, if this machine lacks the store.
macro_rules! conformance_suite {
    ($open:path) => {
        conformance_suite!($open;
            creating_a_run_again_joins_it,
            a_queue_belongs_to_one_place_of_records_until_it_is_given_to_another,
            a_rebuilt_run_has_a_higher_generation_and_refuses_the_old_one,
            a_run_of_a_lower_generation_is_replaced_and_one_of_a_higher_is_joined,
            every_operation_on_a_forgotten_run_says_so,
            units_are_added_once_whoever_adds_them,
            a_unit_has_one_holder_and_the_lowest_id_goes_first,
            workers_get_the_models_they_serve_in_their_order,
            a_stale_fence_changes_nothing,
            renewal_keeps_leases_and_tells_what_was_lost,
            a_late_worker_keeps_its_lease_until_somebody_takes_over,
            a_unit_that_kills_alone_is_set_aside_with_its_causes,
            a_death_of_all_workers_at_once_suspects_no_unit,
            a_lone_worker_finds_the_unit_that_kills_it,
            the_innocent_that_died_with_a_killer_are_cleared,
            a_suspect_runs_alone_behind_all_others,
            releasing_is_free,
            the_leases_of_a_dead_worker_go_at_once,
            reaping_is_bounded_and_says_when_more_is_left,
            dead_letters_are_paged_and_can_be_requeued,
            only_an_active_run_leases_and_states_follow_their_rules,
            a_parked_model_waits_while_the_others_go_on,
            counts_add_up,
            workers_come_go_and_drain,
            a_name_has_one_process_until_it_is_silent_or_followed,
            one_identity_leaves_places_for_others,
            what_is_said_of_pools_is_kept_for_a_while,
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
            crate::conformance::run($open, crate::conformance::$name);
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

pub use {leases::*, runs::*, shared::*, strikes::*};

const LEASE: Duration = Duration::from_secs(3_600);
const STEP: Duration = Duration::from_secs(2_400);

fn spec(run: &str) -> RunSpec {
    RunSpec {
        run: RunId::new(run),
        plan_hash: "plan-1".into(),
        lease_for: LEASE,
        max_strikes: 3,
        generation: 1,
    }
}

fn units(model: &str, count: u64) -> Vec<NewUnit> {
    let unit =
        |i: u64| NewUnit { model: model.into(), dialogues: 10, payload: format!("{model} {i}").into_bytes() };
    (0..count).map(unit).collect()
}

fn ask(worker: &str, models: &[&str], max_units: u32) -> LeaseRequest {
    let models = models.iter().map(|model| ModelLabel::new(*model)).collect();
    LeaseRequest { worker: worker.into(), models, max_units, alone: true }
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

/// A worker's process dies.
async fn die(bench: &Bench, at: &RunRef, worker: &str) -> Reaped {
    bench.store.reap(at, &Reap::Worker(worker.into())).await.unwrap()
}

/// pending, leased, dead, done of model `m`.
async fn places(bench: &Bench, at: &RunRef) -> (u64, u64, u64, u64) {
    let counts = bench.store.counts(at).await.unwrap();
    let m = counts.iter().find(|counts| counts.model.as_str() == "m").expect("model m");
    (m.pending, m.leased, m.dead, m.done)
}

pub(crate) use conformance_suite;

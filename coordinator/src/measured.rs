//! A queue whose calls are timed.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{DialogueKey, InstanceId, ModelLabel, RunId, WorkerId};
use queue::{
    Added, Claim, Commit, CommitEffect, Committed, Fence, Heartbeat, Lease, LeaseRequest, ModelCounts,
    NewUnit, QueueStore, RateLimit, RateReply, Reap, Reaped, Renewal, Reply, RunRef, RunSpec, RunState,
    RunStatus, Suspect, Transition, UnitId, WorkerEntry,
};

use crate::metrics;

/// A queue whose calls are timed.
pub(crate) struct Measured(pub(crate) Arc<dyn QueueStore>);

fn timed<'a, T: 'a>(name: &'static str, call: Reply<'a, T>) -> Reply<'a, T> {
    Box::pin(async move {
        let began = Instant::now();
        let result = call.await;
        metrics::queue_called(name, began.elapsed(), result.as_ref().err());
        result
    })
}

/// Passes calls on and times them.
macro_rules! timed {
    ($($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {$(
        fn $call<'a>(&'a self, $($argument: $type),*) -> Reply<'a, $answer> {
            timed(stringify!($call), self.0.$call($($argument),*))
        }
    )+};
}

impl QueueStore for Measured {
    timed! {
        owner() -> Option<String>;
        claim(owner: &'a str, anew: bool) -> String;
        create_run(spec: &'a RunSpec) -> RunStatus;
        run(run: &'a RunId) -> Option<RunStatus>;
        runs() -> Vec<RunStatus>;
        set_state(at: &'a RunRef, to: RunState) -> RunState;
        forget_run(run: &'a RunId) -> bool;
        add_units(at: &'a RunRef, first: UnitId, units: &'a [NewUnit]) -> Added;
        lease(at: &'a RunRef, ask: &'a LeaseRequest) -> Vec<Lease>;
        renew(at: &'a RunRef, worker: &'a WorkerId, models: &'a [ModelLabel], held: &'a [Fence]) -> Renewal;
        release(at: &'a RunRef, fences: &'a [Fence]) -> Vec<Transition>;
        finish(at: &'a RunRef, fences: &'a [Fence]) -> Vec<Transition>;
        reap(at: &'a RunRef, whose: &'a Reap) -> Reaped;
        tickets(at: &'a RunRef, count: u32) -> Range<u64>;
        commit(at: &'a RunRef, commits: &'a [Commit]) -> Vec<CommitEffect>;
        committed(at: &'a RunRef, keys: &'a [DialogueKey]) -> Vec<Option<Committed>>;
        counts(at: &'a RunRef) -> Vec<ModelCounts>;
        suspects(at: &'a RunRef, dead: bool, after: Option<UnitId>, limit: u32) -> Vec<Suspect>;
        suspect(at: &'a RunRef, unit: UnitId) -> Option<Suspect>;
        requeue(at: &'a RunRef, units: &'a [UnitId]) -> u64;
        park(at: &'a RunRef, model: &'a ModelLabel, parked_for: Duration, reason: &'a str) -> ();
        unpark(at: &'a RunRef, model: &'a ModelLabel) -> ();
        heartbeat(worker: &'a WorkerId, claim: &'a Claim, info: &'a [u8], ttl: Duration) -> Heartbeat;
        workers() -> Vec<WorkerEntry>;
        drain_worker(worker: &'a WorkerId) -> bool;
        deregister(worker: &'a WorkerId, instance: &'a InstanceId) -> bool;
        take_rate(bucket: &'a str, rate: RateLimit, permits: u32) -> RateReply;
        now_ms() -> u64;
        check() -> Vec<String>;
    }
}

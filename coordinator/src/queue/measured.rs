//! A queue whose calls are timed.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{DialogueKey, InstanceId, ModelLabel, RunId, WorkerId};
use queue::{
    Added, Claim, Commit, CommitEffect, Committed, Fence, Heartbeat, Lease, LeaseRequest, ModelCounts,
    NewUnit, QueueOwner, QueueStore, RateLimit, RateReply, Reap, Reaped, Renewal, RunRef, RunSpec, RunState,
    RunStatus, Suspect, Transition, UnitId, WorkerEntry,
};

use crate::metrics;

/// A queue whose calls are timed.
pub(crate) struct Measured(pub(crate) Arc<dyn QueueStore>);

/// Passes calls on and times them.
macro_rules! timed {
    ($($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        #[async_trait::async_trait]
        impl QueueStore for Measured {
            fn address(&self) -> Option<&str> {
                self.0.address()
            }

            $(async fn $call(&self, $($argument: $type),*) -> queue::Result<$answer> {
                let began = Instant::now();
                let result = self.0.$call($($argument),*).await;
                metrics::queue_called(stringify!($call), began.elapsed(), result.as_ref().err());
                result
            })+
        }
    };
}

timed! {
    owner() -> Option<QueueOwner>;
    bind(from: Option<&QueueOwner>, to: &QueueOwner) -> QueueOwner;
    create_run(spec: &RunSpec) -> RunStatus;
    run(run: &RunId) -> Option<RunStatus>;
    runs() -> Vec<RunStatus>;
    set_state(at: &RunRef, to: RunState) -> RunState;
    forget_run(run: &RunId) -> bool;
    add_units(at: &RunRef, first: UnitId, units: &[NewUnit]) -> Added;
    lease(at: &RunRef, ask: &LeaseRequest) -> Vec<Lease>;
    renew(at: &RunRef, worker: &WorkerId, models: &[ModelLabel], held: &[Fence]) -> Renewal;
    release(at: &RunRef, fences: &[Fence]) -> Vec<Transition>;
    finish(at: &RunRef, fences: &[Fence]) -> Vec<Transition>;
    reap(at: &RunRef, whose: &Reap) -> Reaped;
    tickets(at: &RunRef, count: u32) -> Range<u64>;
    commit(at: &RunRef, commits: &[Commit]) -> Vec<CommitEffect>;
    committed(at: &RunRef, keys: &[DialogueKey]) -> Vec<Option<Committed>>;
    counts(at: &RunRef) -> Vec<ModelCounts>;
    suspects(at: &RunRef, dead: bool, after: Option<UnitId>, limit: u32) -> Vec<Suspect>;
    suspect(at: &RunRef, unit: UnitId) -> Option<Suspect>;
    requeue(at: &RunRef, units: &[UnitId]) -> u64;
    park(at: &RunRef, model: &ModelLabel, parked_for: Duration, reason: &str) -> ();
    unpark(at: &RunRef, model: &ModelLabel) -> ();
    heartbeat(worker: &WorkerId, claim: &Claim, info: &[u8], ttl: Duration) -> Heartbeat;
    workers() -> Vec<WorkerEntry>;
    drain_worker(worker: &WorkerId) -> bool;
    deregister(worker: &WorkerId, instance: &InstanceId) -> bool;
    take_rate(bucket: &str, rate: RateLimit, permits: u32) -> RateReply;
    now_ms() -> u64;
    check() -> Vec<String>;
}

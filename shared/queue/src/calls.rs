//! The calls of a queue as a list, for stores that pass them on to another.

/// Calls a macro with all methods of [`QueueStore`](crate::QueueStore) that operate on the queue, each as `NAME(ARGUMENT: TYPE,
/// …) -> ANSWER;`. The macro's crate must depend on `domain`. A new method of the trait is added here, too.
#[macro_export]
macro_rules! for_each_call {
    ($calls:ident) => {
        $calls! {
            owner() -> Option<$crate::QueueOwner>;
            bind(from: Option<&$crate::QueueOwner>, to: &$crate::QueueOwner) -> $crate::QueueOwner;
            create_run(spec: &$crate::RunSpec) -> $crate::RunStatus;
            run(run: &::domain::RunId) -> Option<$crate::RunStatus>;
            runs() -> Vec<$crate::RunStatus>;
            set_state(at: &$crate::RunRef, to: $crate::RunState) -> $crate::RunState;
            forget_run(run: &::domain::RunId) -> bool;
            add_units(at: &$crate::RunRef, first: $crate::UnitId, units: &[$crate::NewUnit]) -> $crate::Added;
            lease(at: &$crate::RunRef, ask: &$crate::LeaseRequest) -> Vec<$crate::Lease>;
            renew(at: &$crate::RunRef, worker: &::domain::WorkerId, models: &[::domain::ModelLabel], held: &[$crate::Fence]) -> $crate::Renewal;
            release(at: &$crate::RunRef, fences: &[$crate::Fence]) -> Vec<$crate::Transition>;
            finish(at: &$crate::RunRef, fences: &[$crate::Fence]) -> Vec<$crate::Transition>;
            reap(at: &$crate::RunRef, whose: &$crate::Reap) -> $crate::Reaped;
            counts(at: &$crate::RunRef) -> Vec<$crate::ModelCounts>;
            suspects(at: &$crate::RunRef, dead: bool, after: Option<$crate::UnitId>, limit: u32) -> Vec<$crate::Suspect>;
            suspect(at: &$crate::RunRef, unit: $crate::UnitId) -> Option<$crate::Suspect>;
            requeue(at: &$crate::RunRef, units: &[$crate::UnitId]) -> u64;
            park(at: &$crate::RunRef, model: &::domain::ModelLabel, parked_for: ::std::time::Duration, reason: &str) -> ();
            unpark(at: &$crate::RunRef, model: &::domain::ModelLabel) -> ();
            heartbeat(worker: &::domain::WorkerId, claim: &$crate::Claim, info: &[u8], ttl: ::std::time::Duration) -> $crate::Heartbeat;
            workers() -> Vec<$crate::WorkerEntry>;
            drain_worker(worker: &::domain::WorkerId) -> bool;
            deregister(worker: &::domain::WorkerId, instance: &::domain::InstanceId) -> bool;
            note_pools(release: &str, info: &[u8], ttl: ::std::time::Duration) -> ();
            pools() -> Vec<$crate::PoolsEntry>;
            take_rate(bucket: &str, rate: $crate::RateLimit, permits: u32) -> $crate::RateReply;
            now_ms() -> u64;
            check() -> Vec<String>;
        }
    };
}

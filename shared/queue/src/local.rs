//! The queue of one process: the memory model behind a lock.
//!
//! Every operation takes microseconds and none waits, so async callers may hold the lock.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{DialogueKey, InstanceId, ModelLabel, RunId, WorkerId};

use crate::clock::Clock;
use crate::commit::{Commit, CommitEffect, Committed};
use crate::error::Result;
use crate::limits;
use crate::memory::MemoryQueue;
use crate::run::{ModelCounts, RunRef, RunSpec, RunState, RunStatus};
use crate::store::{QueueStore, Reply};
use crate::unit::{
    Added, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Suspect, Transition, UnitId,
};
use crate::worker::{Claim, Heartbeat, RateLimit, RateReply, WorkerEntry};

/// Called with the queue after every operation.
type Inspect = Box<dyn FnMut(&MemoryQueue) + Send>;

/// A store in this process; its content ends with the process. Clones share it.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
    clock: Arc<dyn Clock>,
}

struct Shared {
    queue: MemoryQueue,
    /// Identity of the record store that the queue belongs to.
    owner: Option<String>,
    inspect: Option<Inspect>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with(clock, None)
    }

    /// The same, with every rule of [`crate::invariants`] checked after every operation.
    ///
    /// # Panics
    /// Operations panic if a rule is violated.
    #[cfg(feature = "test-support")]
    pub fn checked(clock: Arc<dyn Clock>) -> Self {
        let mut before = MemoryQueue::default();
        Self::with(
            clock,
            Some(Box::new(move |now| {
                let checked =
                    crate::invariants::check(now).and_then(|()| crate::invariants::check_step(&before, now));
                if let Err(broken) = checked {
                    panic!("{broken}");
                }
                before = now.clone();
            })),
        )
    }

    /// The same as [`new`](Self::new) without one of its safeguards.
    #[cfg(feature = "test-support")]
    pub fn without(clock: Arc<dyn Clock>, safeguards: crate::Safeguards) -> Self {
        let store = Self::with(clock, None);
        store.lock().queue.safeguards = safeguards;
        store
    }

    /// What it holds now, to [go back to](Self::go_back_to).
    #[cfg(feature = "test-support")]
    pub fn copy(&self) -> Self {
        let copy = Self::with(Arc::clone(&self.clock), None);
        copy.lock().queue = self.lock().queue.clone();
        copy
    }

    /// Takes on what another store holds, as a server does that is restored from an older copy of itself.
    #[cfg(feature = "test-support")]
    pub fn go_back_to(&self, then: &Self) {
        let queue = then.lock().queue.clone();
        self.lock().queue = queue;
    }

    fn with(clock: Arc<dyn Clock>, inspect: Option<Inspect>) -> Self {
        let shared = Shared { queue: MemoryQueue::default(), owner: None, inspect };
        Self { shared: Arc::new(Mutex::new(shared)), clock }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the input, then runs the operation. The clock is read under the lock, so that time never decreases from
    /// one operation to the next.
    fn call<'a, T: Send + 'a>(
        &'a self,
        input: Result<()>,
        work: impl FnOnce(&mut MemoryQueue, u64) -> Result<T> + Send + 'a,
    ) -> Reply<'a, T> {
        Box::pin(async move {
            input?;
            let mut shared = self.lock();
            let Shared { queue, inspect, .. } = &mut *shared;
            let answer = work(queue, self.clock.now_ms());
            if let Some(inspect) = inspect {
                inspect(queue);
            }
            answer
        })
    }
}

impl QueueStore for MemoryStore {
    fn owner(&self) -> Reply<'_, Option<String>> {
        Box::pin(async move { Ok(self.lock().owner.clone()) })
    }

    fn claim<'a>(&'a self, owner: &'a str, anew: bool) -> Reply<'a, String> {
        Box::pin(async move {
            let mut shared = self.lock();
            if anew {
                shared.owner = None;
            }
            Ok(shared.owner.get_or_insert_with(|| owner.to_owned()).clone())
        })
    }

    fn create_run<'a>(&'a self, spec: &'a RunSpec) -> Reply<'a, RunStatus> {
        self.call(limits::check_spec(spec), move |queue, _| queue.create_run(spec))
    }

    fn run<'a>(&'a self, run: &'a RunId) -> Reply<'a, Option<RunStatus>> {
        self.call(limits::check_run(run), move |queue, _| queue.run(run))
    }

    fn runs(&self) -> Reply<'_, Vec<RunStatus>> {
        self.call(Ok(()), |queue, _| queue.runs())
    }

    fn set_state<'a>(&'a self, at: &'a RunRef, to: RunState) -> Reply<'a, RunState> {
        self.call(Ok(()), move |queue, _| queue.set_state(at, to))
    }

    fn forget_run<'a>(&'a self, run: &'a RunId) -> Reply<'a, bool> {
        self.call(limits::check_run(run), move |queue, _| queue.forget_run(run))
    }

    fn add_units<'a>(&'a self, at: &'a RunRef, first: UnitId, units: &'a [NewUnit]) -> Reply<'a, Added> {
        self.call(limits::check_units(units), move |queue, _| queue.add_units(at, first, units))
    }

    fn lease<'a>(&'a self, at: &'a RunRef, ask: &'a LeaseRequest) -> Reply<'a, Vec<Lease>> {
        self.call(limits::check_lease(ask), move |queue, now| queue.lease(now, at, ask))
    }

    fn renew<'a>(
        &'a self,
        at: &'a RunRef,
        worker: &'a WorkerId,
        models: &'a [ModelLabel],
        held: &'a [Fence],
    ) -> Reply<'a, Renewal> {
        let input = limits::check_worker(worker)
            .and_then(|()| limits::check_models(models))
            .and_then(|()| limits::check_fences(held));
        self.call(input, move |queue, now| queue.renew(now, at, worker, models, held))
    }

    fn release<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>> {
        self.call(limits::check_fences(fences), move |queue, _| queue.release(at, fences))
    }

    fn finish<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>> {
        self.call(limits::check_fences(fences), move |queue, _| queue.finish(at, fences))
    }

    fn reap<'a>(&'a self, at: &'a RunRef, whose: &'a Reap) -> Reply<'a, Reaped> {
        self.call(Ok(()), move |queue, now| queue.reap(now, at, whose))
    }

    fn tickets<'a>(&'a self, at: &'a RunRef, count: u32) -> Reply<'a, Range<u64>> {
        self.call(limits::check_tickets(count), move |queue, now| queue.tickets(now, at, count))
    }

    fn commit<'a>(&'a self, at: &'a RunRef, commits: &'a [Commit]) -> Reply<'a, Vec<CommitEffect>> {
        self.call(limits::check_commits(commits), move |queue, _| queue.commit(at, commits))
    }

    fn committed<'a>(&'a self, at: &'a RunRef, keys: &'a [DialogueKey]) -> Reply<'a, Vec<Option<Committed>>> {
        self.call(limits::check_keys(keys), move |queue, _| queue.committed(at, keys))
    }

    fn counts<'a>(&'a self, at: &'a RunRef) -> Reply<'a, Vec<ModelCounts>> {
        self.call(Ok(()), move |queue, now| queue.counts(now, at))
    }

    fn suspects<'a>(
        &'a self,
        at: &'a RunRef,
        dead: bool,
        after: Option<UnitId>,
        limit: u32,
    ) -> Reply<'a, Vec<Suspect>> {
        self.call(limits::check_page(limit), move |queue, _| queue.suspects(at, dead, after, limit))
    }

    fn suspect<'a>(&'a self, at: &'a RunRef, unit: UnitId) -> Reply<'a, Option<Suspect>> {
        self.call(limits::check_unit_ids(&[unit]), move |queue, _| queue.suspect(at, unit))
    }

    fn requeue<'a>(&'a self, at: &'a RunRef, units: &'a [UnitId]) -> Reply<'a, u64> {
        self.call(limits::check_unit_ids(units), move |queue, _| queue.requeue(at, units))
    }

    fn park<'a>(
        &'a self,
        at: &'a RunRef,
        model: &'a ModelLabel,
        parked_for: Duration,
        reason: &'a str,
    ) -> Reply<'a, ()> {
        let reason = limits::shorten(reason);
        self.call(limits::check_parking(model, parked_for), move |queue, now| {
            queue.park(at, model, now + millis(parked_for), reason)
        })
    }

    fn unpark<'a>(&'a self, at: &'a RunRef, model: &'a ModelLabel) -> Reply<'a, ()> {
        self.call(limits::check_model(model), move |queue, _| queue.unpark(at, model))
    }

    fn heartbeat<'a>(
        &'a self,
        worker: &'a WorkerId,
        claim: &'a Claim,
        info: &'a [u8],
        ttl: Duration,
    ) -> Reply<'a, Heartbeat> {
        let input = limits::check_heartbeat(worker, claim, info, ttl);
        self.call(input, move |queue, now| queue.heartbeat(now, worker, claim, info, ttl))
    }

    fn workers(&self) -> Reply<'_, Vec<WorkerEntry>> {
        self.call(Ok(()), MemoryQueue::workers)
    }

    fn drain_worker<'a>(&'a self, worker: &'a WorkerId) -> Reply<'a, bool> {
        self.call(limits::check_worker(worker), move |queue, now| queue.drain_worker(now, worker))
    }

    fn deregister<'a>(&'a self, worker: &'a WorkerId, instance: &'a InstanceId) -> Reply<'a, bool> {
        let input = limits::check_worker(worker).and_then(|()| limits::check_instance(instance));
        self.call(input, move |queue, now| queue.deregister(now, worker, instance))
    }

    fn take_rate<'a>(&'a self, bucket: &'a str, rate: RateLimit, permits: u32) -> Reply<'a, RateReply> {
        let input = limits::check_rate(bucket, rate, permits);
        self.call(input, move |queue, now| queue.take_rate(now, bucket, rate, permits))
    }

    fn now_ms(&self) -> Reply<'_, u64> {
        self.call(Ok(()), |_, now| Ok(now))
    }

    fn check(&self) -> Reply<'_, Vec<String>> {
        self.call(Ok(()), |queue, _| queue.runs().map(|_| Vec::new()))
    }
}

/// Whole milliseconds; the limits keep every duration far below what 64 bits hold.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

//! The queue of one process: the memory model behind a lock.
//!
//! Every operation takes microseconds and none waits, so async callers may hold the lock.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{DialogueKey, InstanceId, ModelLabel, RunId, WorkerId};

use crate::clock::{Clock, millis};
use crate::commit::{Commit, CommitEffect, Committed};
use crate::error::Result;
use crate::limits;
use crate::memory::MemoryQueue;
use crate::owner::QueueOwner;
use crate::run::{ModelCounts, RunRef, RunSpec, RunStatus};
use crate::run_state::RunState;
use crate::store::QueueStore;
use crate::unit::{
    Added, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Suspect, Transition, UnitId,
};
use crate::worker::{Claim, Heartbeat, PoolsEntry, RateLimit, RateReply, WorkerEntry};

/// Called with the queue after every operation.
type Inspect = Box<dyn FnMut(&MemoryQueue) + Send>;

/// A store in this process; its content ends with the process. Clones share it.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
    clock: Arc<dyn Clock>,
    address: Option<String>,
}

struct Shared {
    queue: MemoryQueue,
    owner: Option<QueueOwner>,
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

    /// The same with the address of a server.
    #[cfg(feature = "test-support")]
    pub fn at(self, address: &str) -> Self {
        Self { address: Some(address.to_owned()), ..self }
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
        Self { shared: Arc::new(Mutex::new(shared)), clock, address: None }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the input, then runs the operation. The clock is read under the lock, so that time never decreases from
    /// one operation to the next.
    fn call<T>(&self, input: Result<()>, work: impl FnOnce(&mut MemoryQueue, u64) -> Result<T>) -> Result<T> {
        input?;
        let mut shared = self.lock();
        let Shared { queue, inspect, .. } = &mut *shared;
        let answer = work(queue, self.clock.now_ms());
        if let Some(inspect) = inspect {
            inspect(queue);
        }
        answer
    }
}

#[async_trait::async_trait]
impl QueueStore for MemoryStore {
    fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    async fn owner(&self) -> Result<Option<QueueOwner>> {
        Ok(self.lock().owner.clone())
    }

    async fn bind(&self, from: Option<&QueueOwner>, to: &QueueOwner) -> Result<QueueOwner> {
        let mut shared = self.lock();
        if shared.owner.as_ref() == from {
            shared.owner = Some(to.clone());
        }
        Ok(shared.owner.clone().unwrap_or_else(|| to.clone()))
    }

    async fn create_run(&self, spec: &RunSpec) -> Result<RunStatus> {
        self.call(limits::check_spec(spec), |queue, _| queue.create_run(spec))
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunStatus>> {
        self.call(limits::check_run(run), |queue, _| queue.run(run))
    }

    async fn runs(&self) -> Result<Vec<RunStatus>> {
        self.call(Ok(()), |queue, _| queue.runs())
    }

    async fn set_state(&self, at: &RunRef, to: RunState) -> Result<RunState> {
        self.call(Ok(()), |queue, _| queue.set_state(at, to))
    }

    async fn forget_run(&self, run: &RunId) -> Result<bool> {
        self.call(limits::check_run(run), |queue, _| queue.forget_run(run))
    }

    async fn add_units(&self, at: &RunRef, first: UnitId, units: &[NewUnit]) -> Result<Added> {
        self.call(limits::check_units(units), |queue, _| queue.add_units(at, first, units))
    }

    async fn lease(&self, at: &RunRef, ask: &LeaseRequest) -> Result<Vec<Lease>> {
        self.call(limits::check_lease(ask), |queue, now| queue.lease(now, at, ask))
    }

    async fn renew(
        &self,
        at: &RunRef,
        worker: &WorkerId,
        models: &[ModelLabel],
        held: &[Fence],
    ) -> Result<Renewal> {
        let input = limits::check_worker(worker)
            .and_then(|()| limits::check_models(models))
            .and_then(|()| limits::check_fences(held));
        self.call(input, |queue, now| queue.renew(now, at, worker, models, held))
    }

    async fn release(&self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>> {
        self.call(limits::check_fences(fences), |queue, _| queue.release(at, fences))
    }

    async fn finish(&self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>> {
        self.call(limits::check_fences(fences), |queue, _| queue.finish(at, fences))
    }

    async fn reap(&self, at: &RunRef, whose: &Reap) -> Result<Reaped> {
        self.call(Ok(()), |queue, now| queue.reap(now, at, whose))
    }

    async fn tickets(&self, at: &RunRef, count: u32) -> Result<Range<u64>> {
        self.call(limits::check_tickets(count), |queue, now| queue.tickets(now, at, count))
    }

    async fn commit(&self, at: &RunRef, commits: &[Commit]) -> Result<Vec<CommitEffect>> {
        self.call(limits::check_commits(commits), |queue, _| queue.commit(at, commits))
    }

    async fn committed(&self, at: &RunRef, keys: &[DialogueKey]) -> Result<Vec<Option<Committed>>> {
        self.call(limits::check_keys(keys), |queue, _| queue.committed(at, keys))
    }

    async fn counts(&self, at: &RunRef) -> Result<Vec<ModelCounts>> {
        self.call(Ok(()), |queue, now| queue.counts(now, at))
    }

    async fn suspects(
        &self,
        at: &RunRef,
        dead: bool,
        after: Option<UnitId>,
        limit: u32,
    ) -> Result<Vec<Suspect>> {
        self.call(limits::check_page(limit), |queue, _| queue.suspects(at, dead, after, limit))
    }

    async fn suspect(&self, at: &RunRef, unit: UnitId) -> Result<Option<Suspect>> {
        self.call(limits::check_unit_ids(&[unit]), |queue, _| queue.suspect(at, unit))
    }

    async fn requeue(&self, at: &RunRef, units: &[UnitId]) -> Result<u64> {
        self.call(limits::check_unit_ids(units), |queue, _| queue.requeue(at, units))
    }

    async fn park(&self, at: &RunRef, model: &ModelLabel, parked_for: Duration, reason: &str) -> Result<()> {
        let reason = limits::shorten(reason);
        self.call(limits::check_parking(model, parked_for), |queue, now| {
            queue.park(at, model, now + millis(parked_for), reason)
        })
    }

    async fn unpark(&self, at: &RunRef, model: &ModelLabel) -> Result<()> {
        self.call(limits::check_model(model), |queue, _| queue.unpark(at, model))
    }

    async fn heartbeat(
        &self,
        worker: &WorkerId,
        claim: &Claim,
        info: &[u8],
        ttl: Duration,
    ) -> Result<Heartbeat> {
        let input = limits::check_heartbeat(worker, claim, info, ttl);
        self.call(input, |queue, now| queue.heartbeat(now, worker, claim, info, ttl))
    }

    async fn workers(&self) -> Result<Vec<WorkerEntry>> {
        self.call(Ok(()), MemoryQueue::workers)
    }

    async fn drain_worker(&self, worker: &WorkerId) -> Result<bool> {
        self.call(limits::check_worker(worker), |queue, now| queue.drain_worker(now, worker))
    }

    async fn deregister(&self, worker: &WorkerId, instance: &InstanceId) -> Result<bool> {
        let input = limits::check_worker(worker).and_then(|()| limits::check_instance(instance));
        self.call(input, |queue, now| queue.deregister(now, worker, instance))
    }

    async fn note_pools(&self, release: &str, info: &[u8], ttl: Duration) -> Result<()> {
        let input = limits::check_pools(release, info, ttl);
        self.call(input, |queue, now| queue.note_pools(now, release, info, ttl))
    }

    async fn pools(&self) -> Result<Vec<PoolsEntry>> {
        self.call(Ok(()), MemoryQueue::pools)
    }

    async fn take_rate(&self, bucket: &str, rate: RateLimit, permits: u32) -> Result<RateReply> {
        let input = limits::check_rate(bucket, rate, permits);
        self.call(input, |queue, now| queue.take_rate(now, bucket, rate, permits))
    }

    async fn now_ms(&self) -> Result<u64> {
        self.call(Ok(()), |_, now| Ok(now))
    }

    async fn check(&self) -> Result<Vec<String>> {
        self.call(Ok(()), |queue, _| queue.runs().map(|_| Vec::new()))
    }
}

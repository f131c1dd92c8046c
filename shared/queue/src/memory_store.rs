//! The queue behind a lock: of one process, or of the leader of a fleet, for whose next leader Redis keeps it.
//!
//! Every operation takes microseconds and none waits, so async callers may hold the lock. The answers of a leader wait for the
//! [round](crate::rounds) with their changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{InstanceId, ModelLabel, RunId, WorkerId};

use crate::clock::{Clock, millis};
use crate::error::{Error, Result};
use crate::keeper::{BackingStore, Keeper, LeaderFence};
use crate::kept::Change;
use crate::limits;
use crate::memory::MemoryQueue;
use crate::owner::QueueOwner;
use crate::redis::{RedisOptions, RedisServer};
use crate::rounds::{Role, Rounds};
use crate::run::{ModelCounts, RunRef, RunSpec, RunStatus};
use crate::run_state::RunState;
use crate::store::QueueStore;
use crate::unit::{
    Added, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Suspect, Transition, UnitId,
};
use crate::worker::{Claim, Heartbeat, PoolsEntry, RateLimit, RateReply, WorkerEntry};

/// Called with the queue after every operation.
type Inspect = Box<dyn FnMut(&MemoryQueue) + Send>;

/// A queue. Clones share it. Without Redis its content ends with the process.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) address: Option<String>,
    keeper: Option<Arc<Keeper>>,
}

/// What a lock is for.
pub(crate) struct Shared {
    pub(crate) queue: MemoryQueue,
    owner: Option<QueueOwner>,
    /// Tests look at the queue after every operation.
    pub(crate) inspect: Option<Inspect>,
    /// `None` without Redis.
    pub(crate) rounds: Option<Rounds>,
}

/// Locks what is shared.
pub(crate) fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let shared = Shared { queue: MemoryQueue::default(), owner: None, inspect: None, rounds: None };
        Self { shared: Arc::new(Mutex::new(shared)), clock, address: None, keeper: None }
    }

    /// The queue that Redis keeps, for the process with this name. It contacts nobody yet. With its first operation it begins to lead,
    /// or waits until nobody else does.
    ///
    /// # Errors
    /// [`crate::Error::Unfit`]: the address is invalid.
    pub fn kept_in(options: &RedisOptions, name: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self::new(clock).kept_by(Box::new(RedisServer::new(options)?), name))
    }

    /// The same store, kept elsewhere for the next leader.
    pub(crate) fn kept_by(self, backing: Box<dyn BackingStore>, name: &str) -> Self {
        self.lock().rounds = Some(Rounds::default());
        let keeper = Keeper::new(backing, name);
        Self { address: Some(keeper.store().address().to_owned()), keeper: Some(Arc::new(keeper)), ..self }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }

    /// Checks the input, then runs an operation that may change something. The clock is read under the lock, so that time never
    /// decreases from one operation to the next.
    async fn call<T>(
        &self,
        input: Result<()>,
        work: impl FnOnce(&mut MemoryQueue, u64) -> Result<T>,
    ) -> Result<T> {
        self.operate(input, true, Vec::new(), work).await
    }

    /// The same for one that changes nothing.
    async fn read<T>(
        &self,
        input: Result<()>,
        work: impl FnOnce(&mut MemoryQueue, u64) -> Result<T>,
    ) -> Result<T> {
        self.operate(input, false, Vec::new(), work).await
    }

    async fn operate<T>(
        &self,
        input: Result<()>,
        writes: bool,
        also: Vec<Change>,
        work: impl FnOnce(&mut MemoryQueue, u64) -> Result<T>,
    ) -> Result<T> {
        input?;
        if let Some(keeper) = &self.keeper {
            keeper.begin(&self.shared, &self.clock).await;
        }
        let (answer, mark) = {
            let mut shared = self.lock();
            let Shared { queue, inspect, rounds, .. } = &mut *shared;
            let clock_ms = self.clock.now_ms();
            let now_ms = match rounds {
                Some(rounds) => {
                    rounds.may(writes)?;
                    rounds.now(clock_ms)
                }
                None => clock_ms,
            };
            let answer = work(queue, now_ms);
            if let Some(inspect) = inspect {
                inspect(queue);
            }
            let changes = |queue: &mut MemoryQueue| queue.take_changes().into_iter().chain(also).collect();
            (answer, rounds.as_mut().and_then(|rounds| rounds.enqueue(changes(queue))))
        };
        if let (Some(keeper), Some(mark)) = (&self.keeper, mark) {
            keeper.until_applied(&self.shared, mark).await?;
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
        match &self.keeper {
            Some(keeper) => keeper.store().owner().await,
            None => Ok(self.lock().owner.clone()),
        }
    }

    async fn bind(&self, from: Option<&QueueOwner>, to: &QueueOwner) -> Result<QueueOwner> {
        if let Some(keeper) = &self.keeper {
            return keeper.store().bind(from, to).await;
        }
        let mut shared = self.lock();
        if shared.owner.as_ref() == from {
            shared.owner = Some(to.clone());
        }
        Ok(shared.owner.clone().unwrap_or_else(|| to.clone()))
    }

    async fn create_run(&self, spec: &RunSpec) -> Result<RunStatus> {
        self.call(limits::check_spec(spec), |queue, _| queue.create_run(spec)).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunStatus>> {
        self.read(limits::check_run(run), |queue, _| queue.run(run)).await
    }

    async fn runs(&self) -> Result<Vec<RunStatus>> {
        self.read(Ok(()), |queue, _| queue.runs()).await
    }

    async fn set_state(&self, at: &RunRef, to: RunState) -> Result<RunState> {
        self.call(Ok(()), |queue, _| queue.set_state(at, to)).await
    }

    async fn forget_run(&self, run: &RunId) -> Result<bool> {
        let forgot = self.read(limits::check_run(run), |queue, _| queue.forget_run(run)).await;
        match forgot {
            // Where Redis is full this makes room, with the next round.
            Err(Error::Unwritable { .. }) => Ok(true),
            forgot => forgot,
        }
    }

    async fn add_units(&self, at: &RunRef, first: UnitId, units: &[NewUnit]) -> Result<Added> {
        self.call(limits::check_units(units), |queue, _| queue.add_units(at, first, units)).await
    }

    async fn lease(&self, at: &RunRef, ask: &LeaseRequest) -> Result<Vec<Lease>> {
        self.call(limits::check_lease(ask), |queue, now| queue.lease(now, at, ask)).await
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
        self.call(input, |queue, now| queue.renew(now, at, worker, models, held)).await
    }

    async fn release(&self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>> {
        self.call(limits::check_fences(fences), |queue, _| queue.release(at, fences)).await
    }

    async fn finish(&self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>> {
        self.call(limits::check_fences(fences), |queue, _| queue.finish(at, fences)).await
    }

    async fn reap(&self, at: &RunRef, whose: &Reap) -> Result<Reaped> {
        self.call(Ok(()), |queue, now| queue.reap(now, at, whose)).await
    }

    async fn counts(&self, at: &RunRef) -> Result<Vec<ModelCounts>> {
        self.read(Ok(()), |queue, now| queue.counts(now, at)).await
    }

    async fn suspects(
        &self,
        at: &RunRef,
        dead: bool,
        after: Option<UnitId>,
        limit: u32,
    ) -> Result<Vec<Suspect>> {
        self.read(limits::check_page(limit), |queue, _| queue.suspects(at, dead, after, limit)).await
    }

    async fn suspect(&self, at: &RunRef, unit: UnitId) -> Result<Option<Suspect>> {
        self.read(limits::check_unit_ids(&[unit]), |queue, _| queue.suspect(at, unit)).await
    }

    async fn requeue(&self, at: &RunRef, units: &[UnitId]) -> Result<u64> {
        self.call(limits::check_unit_ids(units), |queue, _| queue.requeue(at, units)).await
    }

    async fn park(&self, at: &RunRef, model: &ModelLabel, parked_for: Duration, reason: &str) -> Result<()> {
        let reason = limits::shorten(reason);
        self.call(limits::check_parking(model, parked_for), |queue, now| {
            queue.park(at, model, now + millis(parked_for), reason)
        })
        .await
    }

    async fn unpark(&self, at: &RunRef, model: &ModelLabel) -> Result<()> {
        self.call(limits::check_model(model), |queue, _| queue.unpark(at, model)).await
    }

    async fn heartbeat(
        &self,
        worker: &WorkerId,
        claim: &Claim,
        info: &[u8],
        ttl: Duration,
    ) -> Result<Heartbeat> {
        let input = limits::check_heartbeat(worker, claim, info, ttl);
        self.call(input, |queue, now| queue.heartbeat(now, worker, claim, info, ttl)).await
    }

    async fn workers(&self) -> Result<Vec<WorkerEntry>> {
        self.read(Ok(()), MemoryQueue::workers).await
    }

    async fn drain_worker(&self, worker: &WorkerId) -> Result<bool> {
        self.call(limits::check_worker(worker), |queue, now| queue.drain_worker(now, worker)).await
    }

    async fn deregister(&self, worker: &WorkerId, instance: &InstanceId) -> Result<bool> {
        let input = limits::check_worker(worker).and_then(|()| limits::check_instance(instance));
        self.call(input, |queue, now| queue.deregister(now, worker, instance)).await
    }

    async fn note_pools(&self, release: &str, info: &[u8], ttl: Duration) -> Result<()> {
        let input = limits::check_pools(release, info, ttl);
        self.call(input, |queue, now| queue.note_pools(now, release, info, ttl)).await
    }

    async fn pools(&self) -> Result<Vec<PoolsEntry>> {
        self.read(Ok(()), MemoryQueue::pools).await
    }

    async fn take_rate(&self, bucket: &str, rate: RateLimit, permits: u32) -> Result<RateReply> {
        let input = limits::check_rate(bucket, rate, permits);
        self.call(input, |queue, now| queue.take_rate(now, bucket, rate, permits)).await
    }

    async fn now_ms(&self) -> Result<u64> {
        let probe = if self.keeper.is_some() { vec![Change::Probe] } else { Vec::new() };
        self.operate(Ok(()), true, probe, |_, now| Ok(now)).await
    }

    async fn check(&self) -> Result<Vec<String>> {
        match &self.keeper {
            Some(keeper) => keeper.store().check().await,
            None => Ok(Vec::new()),
        }
    }

    fn leads(&self) -> Result<()> {
        match self.lock().rounds.as_ref().map(Rounds::role) {
            // Trouble of a leader is told by whoever meets it, and who leads is found out by the first operation.
            None | Some(Role::Starting | Role::Leading { .. }) => Ok(()),
            Some(Role::Waiting(why) | Role::Followed(why)) => Err(why.clone()),
        }
    }

    fn set_fence(&self, fence: Arc<dyn LeaderFence>) {
        if let Some(keeper) = &self.keeper {
            keeper.set_fence(fence);
        }
    }

    async fn leave(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.leave(&self.shared).await;
        }
    }

    async fn until_followed(&self) -> String {
        match &self.keeper {
            Some(keeper) => keeper.until_followed(&self.shared).await,
            None => std::future::pending().await,
        }
    }
}

//! Stores in this process: a synchronous queue on a thread of its own.
//!
//! Asynchronous callers must not wait for a disk, so the queue lives on its own thread behind a bounded channel.
//! The memory model does not need that, and is run the same way so that there is one way.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::{DialogueKey, ModelLabel, RunId, WorkerId};
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;
use crate::commit::{Commit, Committed, Verdict};
use crate::embedded::SqliteQueue;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::MemoryQueue;
use crate::run::{ModelCounts, RunRef, RunSpec, RunState, RunStatus};
use crate::store::{QueueStore, Reply};
use crate::unit::{
    Added, DeadLetter, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Struck, Transition, UnitId,
};
use crate::worker::{Orders, Rate, RateReply, WorkerEntry};

/// Operations that wait for the thread; callers beyond them wait for a place.
const JOBS_WAITING: usize = 256;

/// [`QueueStore`] as plain method calls. `now_ms` is the store's clock; input was checked against
/// [`crate::limits`] before.
pub(crate) trait LocalQueue: Send + 'static {
    fn create_run(&mut self, now_ms: u64, spec: &RunSpec) -> Result<RunStatus>;
    fn run(&mut self, run: &RunId) -> Result<Option<RunStatus>>;
    fn runs(&mut self) -> Result<Vec<RunStatus>>;
    fn set_state(&mut self, at: &RunRef, to: RunState) -> Result<RunState>;
    fn forget_run(&mut self, run: &RunId) -> Result<bool>;
    fn add_units(&mut self, at: &RunRef, first: UnitId, units: &[NewUnit]) -> Result<Added>;
    fn lease(&mut self, now_ms: u64, at: &RunRef, ask: &LeaseRequest) -> Result<Vec<Lease>>;
    fn renew(
        &mut self,
        now_ms: u64,
        at: &RunRef,
        worker: &WorkerId,
        models: &[ModelLabel],
        held: &[Fence],
    ) -> Result<Renewal>;
    fn release(&mut self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>>;
    fn strike(&mut self, now_ms: u64, at: &RunRef, fence: &Fence, cause: &str) -> Result<Struck>;
    fn finish(&mut self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>>;
    fn reap(&mut self, now_ms: u64, at: &RunRef, whose: &Reap) -> Result<Reaped>;
    fn tickets(&mut self, now_ms: u64, at: &RunRef, count: u32) -> Result<Range<u64>>;
    fn commit(&mut self, at: &RunRef, commits: &[Commit]) -> Result<Vec<Verdict>>;
    fn committed(&mut self, at: &RunRef, keys: &[DialogueKey]) -> Result<Vec<Option<Committed>>>;
    fn counts(&mut self, now_ms: u64, at: &RunRef) -> Result<Vec<ModelCounts>>;
    fn dead_letters(&mut self, at: &RunRef, after: Option<UnitId>, limit: u32) -> Result<Vec<DeadLetter>>;
    fn dead_letter(&mut self, at: &RunRef, unit: UnitId) -> Result<Option<DeadLetter>>;
    fn requeue(&mut self, at: &RunRef, units: &[UnitId]) -> Result<u64>;
    fn park(&mut self, at: &RunRef, model: &ModelLabel, until_ms: u64, reason: &str) -> Result<()>;
    fn unpark(&mut self, at: &RunRef, model: &ModelLabel) -> Result<()>;
    fn heartbeat(&mut self, now_ms: u64, worker: &WorkerId, info: &[u8], ttl: Duration) -> Result<Orders>;
    fn workers(&mut self, now_ms: u64) -> Result<Vec<WorkerEntry>>;
    fn drain_worker(&mut self, now_ms: u64, worker: &WorkerId) -> Result<bool>;
    fn deregister(&mut self, worker: &WorkerId) -> Result<()>;
    fn take_rate(&mut self, now_ms: u64, bucket: &str, rate: Rate, permits: u32) -> Result<RateReply>;
}

type Job = Box<dyn FnOnce(&mut dyn LocalQueue, u64) + Send>;

/// A store in this process. Dropping it ends its thread once the operations under way are done.
#[derive(Clone)]
pub struct LocalStore {
    jobs: mpsc::Sender<Job>,
    owner: Arc<Mutex<Option<String>>>,
}

impl LocalStore {
    /// A store that forgets everything when the process ends.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn memory(clock: Arc<dyn Clock>) -> Result<Self> {
        Self::on_thread(MemoryQueue::default(), clock, |_| {})
    }

    /// The same, with every rule of [`crate::invariants`] checked after every operation. The thread panics
    /// where one is broken, and every later operation fails.
    ///
    /// # Errors
    /// Where the system gives no thread.
    #[cfg(feature = "test-support")]
    pub fn checked_memory(clock: Arc<dyn Clock>) -> Result<Self> {
        let mut before = MemoryQueue::default();
        Self::on_thread(MemoryQueue::default(), clock, move |now| {
            let checked =
                crate::invariants::check(now).and_then(|()| crate::invariants::check_step(&before, now));
            if let Err(broken) = checked {
                panic!("{broken}");
            }
            before = now.clone();
        })
    }

    /// A store in one SQLite file, created where there is none. Every operation is on disk before it returns.
    /// Other processes may work with the same file.
    ///
    /// # Errors
    /// Where the file cannot be opened, is no queue, or was written by a version that this one does not know.
    pub fn open(file: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::on_thread(SqliteQueue::open(file)?, clock, |_| {})
    }

    fn on_thread<Q: LocalQueue>(
        mut queue: Q,
        clock: Arc<dyn Clock>,
        mut after: impl FnMut(&Q) + Send + 'static,
    ) -> Result<Self> {
        let (jobs, mut waiting) = mpsc::channel::<Job>(JOBS_WAITING);
        let work = move || {
            while let Some(job) = waiting.blocking_recv() {
                job(&mut queue, clock.now_ms());
                after(&queue);
            }
        };
        std::thread::Builder::new()
            .name("queue".into())
            .spawn(work)
            .map_err(|error| Error::Unavailable { message: format!("no thread for the queue: {error}") })?;
        Ok(Self { jobs, owner: Arc::default() })
    }

    /// Checks the input, then runs the job on the thread. The clock is read there, so that time never falls from
    /// one operation to the next.
    fn call<T: Send + 'static>(
        &self,
        input: Result<()>,
        job: impl FnOnce(&mut dyn LocalQueue, u64) -> Result<T> + Send + 'static,
    ) -> Reply<'static, T> {
        let jobs = self.jobs.clone();
        Box::pin(async move {
            input?;
            let (answer, answered) = oneshot::channel();
            let job: Job = Box::new(move |queue, now_ms| {
                // Nobody waits where the caller's future was dropped; the work is done all the same.
                let _ = answer.send(job(queue, now_ms));
            });
            let ended = || Error::Unavailable { message: "the queue's thread has ended".into() };
            jobs.send(job).await.map_err(|_| ended())?;
            answered.await.map_err(|_| ended())?
        })
    }
}

impl QueueStore for LocalStore {
    fn owner(&self) -> Reply<'_, Option<String>> {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move { Ok(owner) })
    }

    fn claim<'a>(&'a self, owner: &'a str, anew: bool) -> Reply<'a, String> {
        let mut place = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        if anew {
            *place = None;
        }
        let owner = place.get_or_insert_with(|| owner.to_owned()).clone();
        Box::pin(async move { Ok(owner) })
    }

    fn create_run<'a>(&'a self, spec: &'a RunSpec) -> Reply<'a, RunStatus> {
        let spec_ = spec.clone();
        self.call(limits::check_spec(spec), move |queue, now| queue.create_run(now, &spec_))
    }

    fn run<'a>(&'a self, run: &'a RunId) -> Reply<'a, Option<RunStatus>> {
        let run_ = run.clone();
        self.call(limits::check_run(run), move |queue, _| queue.run(&run_))
    }

    fn runs(&self) -> Reply<'_, Vec<RunStatus>> {
        self.call(Ok(()), |queue, _| queue.runs())
    }

    fn set_state<'a>(&'a self, at: &'a RunRef, to: RunState) -> Reply<'a, RunState> {
        let at = at.clone();
        self.call(Ok(()), move |queue, _| queue.set_state(&at, to))
    }

    fn forget_run<'a>(&'a self, run: &'a RunId) -> Reply<'a, bool> {
        let run_ = run.clone();
        self.call(limits::check_run(run), move |queue, _| queue.forget_run(&run_))
    }

    fn add_units<'a>(&'a self, at: &'a RunRef, first: UnitId, units: &'a [NewUnit]) -> Reply<'a, Added> {
        let (at, units_) = (at.clone(), units.to_vec());
        self.call(limits::check_units(units), move |queue, _| queue.add_units(&at, first, &units_))
    }

    fn lease<'a>(&'a self, at: &'a RunRef, ask: &'a LeaseRequest) -> Reply<'a, Vec<Lease>> {
        let (at, ask_) = (at.clone(), ask.clone());
        self.call(limits::check_lease(ask), move |queue, now| queue.lease(now, &at, &ask_))
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
        let (at, worker, models, held) = (at.clone(), worker.clone(), models.to_vec(), held.to_vec());
        self.call(input, move |queue, now| queue.renew(now, &at, &worker, &models, &held))
    }

    fn release<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>> {
        let (at, fences_) = (at.clone(), fences.to_vec());
        self.call(limits::check_fences(fences), move |queue, _| queue.release(&at, &fences_))
    }

    fn strike<'a>(&'a self, at: &'a RunRef, fence: &'a Fence, cause: &'a str) -> Reply<'a, Struck> {
        let input = limits::check_fences(std::slice::from_ref(fence));
        let (at, fence, cause) = (at.clone(), fence.clone(), limits::shorten(cause).to_owned());
        self.call(input, move |queue, now| queue.strike(now, &at, &fence, &cause))
    }

    fn finish<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>> {
        let (at, fences_) = (at.clone(), fences.to_vec());
        self.call(limits::check_fences(fences), move |queue, _| queue.finish(&at, &fences_))
    }

    fn reap<'a>(&'a self, at: &'a RunRef, whose: &'a Reap) -> Reply<'a, Reaped> {
        let (at, whose) = (at.clone(), whose.clone());
        self.call(Ok(()), move |queue, now| queue.reap(now, &at, &whose))
    }

    fn tickets<'a>(&'a self, at: &'a RunRef, count: u32) -> Reply<'a, Range<u64>> {
        let at = at.clone();
        self.call(limits::check_tickets(count), move |queue, now| queue.tickets(now, &at, count))
    }

    fn commit<'a>(&'a self, at: &'a RunRef, commits: &'a [Commit]) -> Reply<'a, Vec<Verdict>> {
        let (at, commits_) = (at.clone(), commits.to_vec());
        self.call(limits::check_commits(commits), move |queue, _| queue.commit(&at, &commits_))
    }

    fn committed<'a>(&'a self, at: &'a RunRef, keys: &'a [DialogueKey]) -> Reply<'a, Vec<Option<Committed>>> {
        let (at, keys_) = (at.clone(), keys.to_vec());
        self.call(limits::check_keys(keys), move |queue, _| queue.committed(&at, &keys_))
    }

    fn counts<'a>(&'a self, at: &'a RunRef) -> Reply<'a, Vec<ModelCounts>> {
        let at = at.clone();
        self.call(Ok(()), move |queue, now| queue.counts(now, &at))
    }

    fn dead_letters<'a>(
        &'a self,
        at: &'a RunRef,
        after: Option<UnitId>,
        limit: u32,
    ) -> Reply<'a, Vec<DeadLetter>> {
        let at = at.clone();
        self.call(limits::check_page(limit), move |queue, _| queue.dead_letters(&at, after, limit))
    }

    fn dead_letter<'a>(&'a self, at: &'a RunRef, unit: UnitId) -> Reply<'a, Option<DeadLetter>> {
        let at = at.clone();
        self.call(limits::check_unit_ids(&[unit]), move |queue, _| queue.dead_letter(&at, unit))
    }

    fn requeue<'a>(&'a self, at: &'a RunRef, units: &'a [UnitId]) -> Reply<'a, u64> {
        let (at, units_) = (at.clone(), units.to_vec());
        self.call(limits::check_unit_ids(units), move |queue, _| queue.requeue(&at, &units_))
    }

    fn park<'a>(
        &'a self,
        at: &'a RunRef,
        model: &'a ModelLabel,
        parked_for: Duration,
        reason: &'a str,
    ) -> Reply<'a, ()> {
        let (at, model_, reason) = (at.clone(), model.clone(), limits::shorten(reason).to_owned());
        self.call(limits::check_parking(model, parked_for), move |queue, now| {
            queue.park(&at, &model_, now + millis(parked_for), &reason)
        })
    }

    fn unpark<'a>(&'a self, at: &'a RunRef, model: &'a ModelLabel) -> Reply<'a, ()> {
        let (at, model_) = (at.clone(), model.clone());
        self.call(limits::check_model(model), move |queue, _| queue.unpark(&at, &model_))
    }

    fn heartbeat<'a>(&'a self, worker: &'a WorkerId, info: &'a [u8], ttl: Duration) -> Reply<'a, Orders> {
        let (worker_, info_) = (worker.clone(), info.to_vec());
        let input = limits::check_heartbeat(worker, info, ttl);
        self.call(input, move |queue, now| queue.heartbeat(now, &worker_, &info_, ttl))
    }

    fn workers(&self) -> Reply<'_, Vec<WorkerEntry>> {
        self.call(Ok(()), LocalQueue::workers)
    }

    fn drain_worker<'a>(&'a self, worker: &'a WorkerId) -> Reply<'a, bool> {
        let worker_ = worker.clone();
        self.call(limits::check_worker(worker), move |queue, now| queue.drain_worker(now, &worker_))
    }

    fn deregister<'a>(&'a self, worker: &'a WorkerId) -> Reply<'a, ()> {
        let worker_ = worker.clone();
        self.call(limits::check_worker(worker), move |queue, _| queue.deregister(&worker_))
    }

    fn take_rate<'a>(&'a self, bucket: &'a str, rate: Rate, permits: u32) -> Reply<'a, RateReply> {
        let bucket_ = bucket.to_owned();
        let input = limits::check_rate(bucket, rate, permits);
        self.call(input, move |queue, now| queue.take_rate(now, &bucket_, rate, permits))
    }

    fn check(&self) -> Reply<'_, Vec<String>> {
        self.call(Ok(()), |queue, _| queue.runs().map(|_| Vec::new()))
    }
}

/// Whole milliseconds; the limits keep every duration far below what 64 bits hold.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

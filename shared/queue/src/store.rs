//! What a queue promises.

use std::ops::Range;
use std::time::Duration;

use domain::{DialogueKey, InstanceId, ModelLabel, RunId, WorkerId};
use futures::future::BoxFuture;

use crate::commit::{Commit, Committed, Verdict};
use crate::error::Result;
use crate::run::{ModelCounts, RunRef, RunSpec, RunState, RunStatus};
use crate::unit::{
    Added, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Suspect, Transition, UnitId,
};
use crate::worker::{Claim, Heartbeat, Rate, RateReply, WorkerEntry};

/// What every operation returns. A boxed future rather than an `async fn`, because the store is chosen at run
/// time from a URL and shared as `Arc<dyn QueueStore>`; one allocation is nothing beside a round trip to Redis
/// or a sync to disk.
pub type Reply<'a, T> = BoxFuture<'a, Result<T>>;

/// The work units of all runs, shared by all coordinators.
///
/// # Guarantees
///
/// - **Atomic.** An operation happens as a whole or not at all, and operations on one run have one order that
///   every caller sees. Any number of coordinators may use the same store at once.
/// - **Own clock.** Deadlines are measured by the store's clock alone. No machine's clock matters to a lease.
/// - **One holder.** A unit is pending, leased to one worker, dead or done. Its attempt number rises with
///   every lease.
/// - **Fenced.** A stale [`Fence`] never changes the queue. A fence stays valid past its deadline until somebody
///   takes the unit over: a worker that is merely late has lost nothing yet.
/// - **Generations.** An operation on a run whose generation is not the caller's changes nothing and fails with
///   [`Error::StaleGeneration`](crate::Error::StaleGeneration); on a run that is not there, with
///   [`Error::RunGone`](crate::Error::RunGone). A rebuilt run has a higher generation than it had before, even
///   where the store lost everything: it is at least the store's time in milliseconds.
/// - **Commits are idempotent** and do not depend on their order (see [`crate::commit`]). A late record is taken
///   whoever holds the unit by now; a scored record is never displaced by a failure.
/// - **Suspects.** A worker that dies, or lets its leases expire, makes the units it held suspects; releasing is free. A
///   suspect runs alone: only a worker that holds nothing gets one, and then nothing else. A death of its worker is a
///   strike then; at [`RunSpec::max_strikes`] the unit is set aside with its causes. One that finishes is cleared.
/// - **Order.** Of a model's pending units the one with the lowest id is leased first, returned or new; suspects come
///   behind all others, those with the fewest deaths first.
/// - **Bounded.** Calls above the limits of [`crate::limits`] are refused before they reach the store; lists are
///   paged; no call blocks until something happens.
///
/// An operation that fails with [`Error::Unavailable`](crate::Error::Unavailable), or whose future is dropped, may
/// have been carried out. Each method says what its repetition does.
pub trait QueueStore: Send + Sync + 'static {
    /// The identity of the place of records that the queue belongs to; `None` before it was claimed.
    fn owner(&self) -> Reply<'_, Option<String>>;

    /// Makes the queue belong to a place of records where it belongs to none, or whatever it belongs to where `anew`;
    /// returns to which it belongs then. Repetition: the same.
    fn claim<'a>(&'a self, owner: &'a str, anew: bool) -> Reply<'a, String>;

    /// Opens a run for adding units, or joins it where it exists with the same plan (then the rest of `spec` is
    /// ignored). Repetition: joins. What an interrupted [`QueueStore::forget_run`] left is removed first.
    fn create_run<'a>(&'a self, spec: &'a RunSpec) -> Reply<'a, RunStatus>;

    /// The run's status, `None` where the store does not know it.
    fn run<'a>(&'a self, run: &'a RunId) -> Reply<'a, Option<RunStatus>>;

    /// All runs, in the order of their names.
    fn runs(&self) -> Reply<'_, Vec<RunStatus>>;

    /// Changes the state and returns the one before. Repetition: returns the same state.
    fn set_state<'a>(&'a self, at: &'a RunRef, to: RunState) -> Reply<'a, RunState>;

    /// Removes every trace of a run, whatever its generation, and says whether there was one. The records are
    /// elsewhere and stay. Repetition: harmless.
    fn forget_run<'a>(&'a self, run: &'a RunId) -> Reply<'a, bool>;

    /// Appends units if `first` is the next id expected, and says which id is the next one then. Units have ids
    /// by their place, so a plan is added in chunks by any number of coordinators: who is refused goes on from
    /// `next`. Repetition: refused, with the same `next`.
    fn add_units<'a>(&'a self, at: &'a RunRef, first: UnitId, units: &'a [NewUnit]) -> Reply<'a, Added>;

    /// Leases pending units to a worker, model by model in the order given; nothing where the run is not active or
    /// the model parked, or the worker holds a suspect of this run. Where there is nothing else, a worker that holds
    /// nothing, here and by [`LeaseRequest::alone`], gets one suspect. Repetition: leases others; the first ones come
    /// back by [`Renewal::unreported`].
    fn lease<'a>(&'a self, at: &'a RunRef, ask: &'a LeaseRequest) -> Reply<'a, Vec<Lease>>;

    /// Renews all leases of a worker on `models` and on the models of `held`, the leases it says it holds.
    /// Repetition: the same.
    fn renew<'a>(
        &'a self,
        at: &'a RunRef,
        worker: &'a WorkerId,
        models: &'a [ModelLabel],
        held: &'a [Fence],
    ) -> Reply<'a, Renewal>;

    /// Gives units back; nothing is held against them. Repetition: stale.
    fn release<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>>;

    /// Ends units for good. All their dialogues must have been committed before. Repetition: stale.
    fn finish<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>>;

    /// Takes over the leases of the dead: their units become suspects, and those that were suspects get a strike. Any
    /// coordinator calls this every second or so. Repetition: takes over what has expired since.
    fn reap<'a>(&'a self, at: &'a RunRef, whose: &'a Reap) -> Reply<'a, Reaped>;

    /// Hands out `count` commit tickets, above all handed out before, in this generation or an earlier one: they
    /// are at least the store's time in microseconds, so not even a loss of the store takes them back. A coordinator
    /// draws them before it appends to the record log. Repetition: others; unused ones do no harm.
    fn tickets<'a>(&'a self, at: &'a RunRef, count: u32) -> Reply<'a, Range<u64>>;

    /// Makes durable records count, one verdict each, in order. Repetition: [`Verdict::Repeated`] for what counts.
    fn commit<'a>(&'a self, at: &'a RunRef, commits: &'a [Commit]) -> Reply<'a, Vec<Verdict>>;

    /// The records that count for these dialogues, one answer each, in order.
    fn committed<'a>(&'a self, at: &'a RunRef, keys: &'a [DialogueKey]) -> Reply<'a, Vec<Option<Committed>>>;

    /// Where each model stands, in the order of their labels; models without units, records and parkings are left
    /// out.
    fn counts<'a>(&'a self, at: &'a RunRef) -> Reply<'a, Vec<ModelCounts>>;

    /// Units set aside (`dead`), or suspects that are not, by id, above `after`, at most `limit`.
    fn suspects<'a>(
        &'a self,
        at: &'a RunRef,
        dead: bool,
        after: Option<UnitId>,
        limit: u32,
    ) -> Reply<'a, Vec<Suspect>>;

    /// One unit with deaths on its account, set aside or not.
    fn suspect<'a>(&'a self, at: &'a RunRef, unit: UnitId) -> Reply<'a, Option<Suspect>>;

    /// Gives units set aside another chance, with a clean slate, and says how many there were.
    /// Repetition: those are not dead any more, so 0.
    fn requeue<'a>(&'a self, at: &'a RunRef, units: &'a [UnitId]) -> Reply<'a, u64>;

    /// Leases out no unit of a model for a while, because its quota is used up. A later call replaces an earlier.
    fn park<'a>(
        &'a self,
        at: &'a RunRef,
        model: &'a ModelLabel,
        parked_for: Duration,
        reason: &'a str,
    ) -> Reply<'a, ()>;

    /// Ends a parking before its time.
    fn unpark<'a>(&'a self, at: &'a RunRef, model: &'a ModelLabel) -> Reply<'a, ()>;

    /// Registers a worker or keeps it registered for `ttl`, and tells it what it is asked to do. Refused while the name is
    /// registered for another process, unless the claim names that one as an earlier process of its own: a restart.
    fn heartbeat<'a>(
        &'a self,
        worker: &'a WorkerId,
        claim: &'a Claim,
        info: &'a [u8],
        ttl: Duration,
    ) -> Reply<'a, Heartbeat>;

    /// The registered workers, in the order of their ids.
    fn workers(&self) -> Reply<'_, Vec<WorkerEntry>>;

    /// Asks a registered worker to drain at its next heartbeat, and says whether there is one.
    fn drain_worker<'a>(&'a self, worker: &'a WorkerId) -> Reply<'a, bool>;

    /// Forgets a worker that has ended, unless another process has its name by now, and says whether the name was its
    /// own. Its leases stay until released or reaped. Repetition: the same.
    fn deregister<'a>(&'a self, worker: &'a WorkerId, instance: &'a InstanceId) -> Reply<'a, bool>;

    /// Takes permits of a budget that all workers share, all of them or none. Repetition: takes others; permits
    /// lost in this way make the calls slower, never faster.
    fn take_rate<'a>(&'a self, bucket: &'a str, rate: Rate, permits: u32) -> Reply<'a, RateReply>;

    /// The store's clock, milliseconds since the Unix epoch.
    fn now_ms(&self) -> Reply<'_, u64>;

    /// Whether the store is there and fit for use. The warnings say what it will do badly and how to mend it.
    fn check(&self) -> Reply<'_, Vec<String>>;
}

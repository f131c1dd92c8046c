//! The trait of all queue stores, with its guarantees.

use std::ops::Range;
use std::time::Duration;

use domain::{DialogueKey, InstanceId, ModelLabel, RunId, WorkerId};
use futures::future::BoxFuture;

use crate::commit::{Commit, CommitEffect, Committed};
use crate::error::Result;
use crate::run::{ModelCounts, RunRef, RunSpec, RunState, RunStatus};
use crate::unit::{
    Added, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Suspect, Transition, UnitId,
};
use crate::worker::{Claim, Heartbeat, RateLimit, RateReply, WorkerEntry};

/// Return type of all operations. A boxed future rather than an `async fn`, because the store is chosen at run time
/// from a URL and shared as `Arc<dyn QueueStore>`; one allocation is negligible beside a round trip to Redis.
pub type Reply<'a, T> = BoxFuture<'a, Result<T>>;

/// The work units of all runs, shared by all coordinators.
///
/// # Guarantees
///
/// - **Atomic.** An operation happens completely or not at all, and operations on one run have one order that every
///   caller sees. Any number of coordinators may use the same store at once.
/// - **Own clock.** Deadlines are measured by the store's clock alone, so clock skew between machines does not
///   matter.
/// - **One holder.** A unit is pending, leased to one worker, dead or done. Its attempt number rises with
///   every lease.
/// - **Fenced.** A stale [`Fence`] never changes the queue. A fence stays valid past its deadline until the unit is
///   taken over: a worker that is merely late has lost nothing yet.
/// - **Generations.** An operation with another generation than the run's changes nothing and fails with
///   [`Error::StaleGeneration`](crate::Error::StaleGeneration); on an unknown run, it fails with
///   [`Error::RunGone`](crate::Error::RunGone). Who builds a run says its generation, and keeps count of them outside of
///   the store, which may lose everything or come back as it was long ago.
/// - **Commits are idempotent** and independent of their order (see [`crate::commit`]). A late record is accepted
///   regardless of who holds the unit now; a failure never replaces a scored record.
/// - **Suspects.** When a worker dies, or its leases expire, the units it held become suspects; releasing has no such
///   effect. A suspect runs alone: only a worker that holds nothing gets one, and then nothing else. If that worker
///   dies, the suspect gets a strike; at [`RunSpec::max_strikes`] it becomes a dead letter with all its causes. A
///   suspect that finishes is cleared.
/// - **Order.** Of a model's pending units the one with the lowest id is leased first, returned or new; suspects come
///   after all others, those with the fewest deaths first.
/// - **Bounded.** Calls above the limits of [`crate::limits`] are refused before they reach the store; lists are
///   paged; no call blocks until something happens.
///
/// An operation that fails with [`Error::Unavailable`](crate::Error::Unavailable), or whose future is dropped, may
/// have been carried out. Each method documents its repetition.
pub trait QueueStore: Send + Sync + 'static {
    /// The identity of the record store that the queue belongs to; `None` before it was claimed.
    fn owner(&self) -> Reply<'_, Option<String>>;

    /// Assigns the queue to a record store if it has none, or in any case with `anew`; returns its record store.
    /// Repetition: the same.
    fn claim<'a>(&'a self, owner: &'a str, anew: bool) -> Reply<'a, String>;

    /// Opens a run for adding units, or joins it if it exists with the same plan, in the generation of `spec` or a higher
    /// one (then the rest of `spec` is ignored). One that exists in a lower generation is removed first: the store has come
    /// back from an older state. Repetition: joins. Remains of an interrupted [`QueueStore::forget_run`] are removed, too.
    fn create_run<'a>(&'a self, spec: &'a RunSpec) -> Reply<'a, RunStatus>;

    /// The run's status; `None` if the store does not know it.
    fn run<'a>(&'a self, run: &'a RunId) -> Reply<'a, Option<RunStatus>>;

    /// All runs, in the order of their names.
    fn runs(&self) -> Reply<'_, Vec<RunStatus>>;

    /// Changes the state and returns the previous one. Repetition: returns the new state.
    fn set_state<'a>(&'a self, at: &'a RunRef, to: RunState) -> Reply<'a, RunState>;

    /// Removes every trace of a run, whatever its generation, and returns whether there was one. Its records are
    /// elsewhere and stay. Repetition: harmless.
    fn forget_run<'a>(&'a self, run: &'a RunId) -> Reply<'a, bool>;

    /// Appends units if `first` is the next expected id; returns the next id. Units are numbered by position, so any
    /// number of coordinators can add a plan in chunks: a refused one continues from `next`. Repetition: refused,
    /// with the same `next`.
    fn add_units<'a>(&'a self, at: &'a RunRef, first: UnitId, units: &'a [NewUnit]) -> Reply<'a, Added>;

    /// Leases pending units to a worker, model by model in the given order. Returns none if the run is not active,
    /// the model is parked, or the worker holds a suspect of this run. If there is nothing else, a worker that holds
    /// nothing, here and by [`LeaseRequest::alone`], gets one suspect. Repetition: leases other units; the first ones
    /// come back as [`Renewal::unreported`].
    fn lease<'a>(&'a self, at: &'a RunRef, ask: &'a LeaseRequest) -> Reply<'a, Vec<Lease>>;

    /// Renews all leases of a worker on `models` and on the models of `held`, the leases that it reports. Repetition:
    /// the same.
    fn renew<'a>(
        &'a self,
        at: &'a RunRef,
        worker: &'a WorkerId,
        models: &'a [ModelLabel],
        held: &'a [Fence],
    ) -> Reply<'a, Renewal>;

    /// Gives units back; this does not count against them. Repetition: stale.
    fn release<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>>;

    /// Marks units as done. All their dialogues must be committed before. Repetition: stale.
    fn finish<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>>;

    /// Ends the leases of dead workers: their units become suspects, and suspects get a strike. Every coordinator
    /// calls this about once a second. Repetition: ends those that expired since.
    fn reap<'a>(&'a self, at: &'a RunRef, whose: &'a Reap) -> Reply<'a, Reaped>;

    /// Draws `count` commit tickets, higher than all drawn before, in any generation: they are at least the store's
    /// time in microseconds, so they rise even after a loss of the store. A coordinator draws them before it appends
    /// to the record log. Repetition: draws others; unused ones are harmless.
    fn tickets<'a>(&'a self, at: &'a RunRef, count: u32) -> Reply<'a, Range<u64>>;

    /// Commits durable records; returns one effect for each, in order. Repetition: [`CommitEffect::Repeated`] for
    /// winners.
    fn commit<'a>(&'a self, at: &'a RunRef, commits: &'a [Commit]) -> Reply<'a, Vec<CommitEffect>>;

    /// The winners of these dialogues, one answer each, in order.
    fn committed<'a>(&'a self, at: &'a RunRef, keys: &'a [DialogueKey]) -> Reply<'a, Vec<Option<Committed>>>;

    /// The counts of each model, ordered by label; models without units, records and parkings are omitted.
    fn counts<'a>(&'a self, at: &'a RunRef) -> Reply<'a, Vec<ModelCounts>>;

    /// Dead letters (with `dead`) or suspects, by id, above `after`, at most `limit`.
    fn suspects<'a>(
        &'a self,
        at: &'a RunRef,
        dead: bool,
        after: Option<UnitId>,
        limit: u32,
    ) -> Reply<'a, Vec<Suspect>>;

    /// One suspect or dead letter.
    fn suspect<'a>(&'a self, at: &'a RunRef, unit: UnitId) -> Reply<'a, Option<Suspect>>;

    /// Gives dead letters another chance, with a clean slate; returns how many there were. Repetition: 0, because
    /// they are not dead any more.
    fn requeue<'a>(&'a self, at: &'a RunRef, units: &'a [UnitId]) -> Reply<'a, u64>;

    /// Leases out no unit of a model for a while, because its quota is used up. A later call replaces an earlier one.
    fn park<'a>(
        &'a self,
        at: &'a RunRef,
        model: &'a ModelLabel,
        parked_for: Duration,
        reason: &'a str,
    ) -> Reply<'a, ()>;

    /// Ends a parking early.
    fn unpark<'a>(&'a self, at: &'a RunRef, model: &'a ModelLabel) -> Reply<'a, ()>;

    /// Registers a worker, or renews its registration for `ttl`. Refused while the name is registered for another
    /// process, unless the claim names that process as a predecessor: a restart.
    fn heartbeat<'a>(
        &'a self,
        worker: &'a WorkerId,
        claim: &'a Claim,
        info: &'a [u8],
        ttl: Duration,
    ) -> Reply<'a, Heartbeat>;

    /// The registered workers, in the order of their ids.
    fn workers(&self) -> Reply<'_, Vec<WorkerEntry>>;

    /// Asks a registered worker to drain at its next heartbeat; returns whether there is one.
    fn drain_worker<'a>(&'a self, worker: &'a WorkerId) -> Reply<'a, bool>;

    /// Removes a worker that has ended, unless another process has taken over its name; returns whether the name was
    /// its own. Its leases stay until released or reaped. Repetition: the same.
    fn deregister<'a>(&'a self, worker: &'a WorkerId, instance: &'a InstanceId) -> Reply<'a, bool>;

    /// Takes permits of a budget that all workers share, all of them or none. Repetition: takes more; permits lost
    /// this way make calls slower, never faster.
    fn take_rate<'a>(&'a self, bucket: &'a str, rate: RateLimit, permits: u32) -> Reply<'a, RateReply>;

    /// The store's clock, milliseconds since the Unix epoch.
    fn now_ms(&self) -> Reply<'_, u64>;

    /// Whether the store is reachable and usable. The warnings say what it will do badly and how to fix it.
    fn check(&self) -> Reply<'_, Vec<String>>;
}

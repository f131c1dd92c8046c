//! The trait of all queue stores, with its guarantees.

use std::sync::Arc;
use std::time::Duration;

use domain::{InstanceId, ModelLabel, RunId, WorkerId};

use crate::error::Result;
use crate::keeper::LeaderFence;
use crate::owner::QueueOwner;
use crate::run::{ModelCounts, RunRef, RunSpec, RunStatus};
use crate::run_state::RunState;
use crate::unit::{
    Added, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Suspect, Transition, UnitId,
};
use crate::worker::{Claim, Heartbeat, PoolsEntry, RateLimit, RateReply, WorkerEntry};

/// The work units of all runs.
///
/// # Guarantees
///
/// - **Atomic.** An operation happens completely or not at all, and operations on one run have one order that every
///   caller sees.
/// - **One leader.** Of the coordinators with the same Redis one leads the queue and answers; the others wait. What it has answered,
///   the next leader knows.
/// - **Own clock.** Deadlines are measured by the leader's clock alone, so clock skew between machines does not
///   matter. After a change of the leader, leases last as long as if they had just been renewed.
/// - **One holder.** A unit is pending, leased to one worker, dead or done. Its attempt number rises with
///   every lease.
/// - **Fenced.** A stale [`Fence`] never changes the queue. A fence stays valid past its deadline until the unit is
///   taken over: a worker that is merely late has lost nothing yet.
/// - **Generations.** An operation with another generation than the run's changes nothing and fails with
///   [`Error::StaleGeneration`](crate::Error::StaleGeneration); on an unknown run, it fails with
///   [`Error::RunGone`](crate::Error::RunGone). The caller that builds a run chooses its generation and keeps the count
///   outside the store, because the store may lose its data or return in an older state.
/// - **Suspects.** When a worker dies, or its leases expire, the units it held are pending again. One such death says
///   nothing about a unit, because a node or a whole fleet may have died; releasing never does. By the second one, a
///   unit becomes a suspect and runs alone: only a worker that holds nothing gets one, and then nothing else. If that
///   worker dies, the suspect gets a strike; at [`RunSpec::max_strikes`] it becomes a dead letter with all its causes. A
///   unit that finishes is cleared.
/// - **Order.** Of a model's pending units the one with the lowest id is leased first, returned or new; suspects come
///   after all others, those with the fewest deaths first.
/// - **Nothing expires unnoticed.** While the store takes no writes, which fail with
///   [`Error::Unwritable`](crate::Error::Unwritable), nobody can renew: no lease is taken over, and no registration ends.
/// - **Bounded.** Calls above the limits of [`crate::limits`] are refused before they reach the store; lists are
///   paged; no call blocks until something happens.
///
/// An operation that fails with [`Error::Unavailable`](crate::Error::Unavailable), or whose future is dropped, may
/// have been carried out. Each method documents its repetition.
///
/// Its futures are boxed, because the store is chosen at run time from a URL and shared as `Arc<dyn QueueStore>`; one
/// allocation is negligible beside a round trip to Redis.
#[async_trait::async_trait]
pub trait QueueStore: Send + Sync + 'static {
    /// Where the queue is, without login and scheme. Equal texts mean the same queue. `None` for a queue that ends with
    /// its process.
    fn address(&self) -> Option<&str>;

    /// Which record store the queue belongs to; `None` before it was bound.
    async fn owner(&self) -> Result<Option<QueueOwner>>;

    /// Gives the queue another owner, if the one that it has is `from`; returns the one that it has afterwards. Repetition:
    /// the same.
    async fn bind(&self, from: Option<&QueueOwner>, to: &QueueOwner) -> Result<QueueOwner>;

    /// Opens a run for adding units, or joins it if it exists with the same plan, in the generation of `spec` or a higher
    /// one (then the rest of `spec` is ignored). One that exists in a lower generation is removed first, whatever its plan:
    /// the store has come back from an older state, or the run was extended. Repetition: joins. Remains of an interrupted
    /// [`QueueStore::forget_run`] are removed, too.
    async fn create_run(&self, spec: &RunSpec) -> Result<RunStatus>;

    /// The run's status; `None` if the store does not know it.
    async fn run(&self, run: &RunId) -> Result<Option<RunStatus>>;

    /// All runs, in the order of their names.
    async fn runs(&self) -> Result<Vec<RunStatus>>;

    /// Changes the state and returns the previous one. Repetition: returns the new state.
    async fn set_state(&self, at: &RunRef, to: RunState) -> Result<RunState>;

    /// Removes every trace of a run, whatever its generation, and returns whether there was one. Its records are
    /// elsewhere and stay. Repetition: harmless.
    async fn forget_run(&self, run: &RunId) -> Result<bool>;

    /// Appends units if `first` is the next expected id; returns the next id. Units are numbered by position, so any
    /// number of coordinators can add a plan in chunks: a refused one continues from `next`. Repetition: refused,
    /// with the same `next`.
    async fn add_units(&self, at: &RunRef, first: UnitId, units: &[NewUnit]) -> Result<Added>;

    /// Leases pending units to a worker, model by model in the given order. Returns none if the run is not active,
    /// the model is parked, or the worker holds a suspect of this run. If there is nothing else, a worker that holds
    /// nothing, here and by [`LeaseRequest::alone`], gets one suspect. Repetition: leases other units; the first ones
    /// come back as [`Renewal::unreported`].
    async fn lease(&self, at: &RunRef, ask: &LeaseRequest) -> Result<Vec<Lease>>;

    /// Renews all leases of a worker on `models` and on the models of `held`, the leases that it reports. Repetition:
    /// the same.
    async fn renew(
        &self,
        at: &RunRef,
        worker: &WorkerId,
        models: &[ModelLabel],
        held: &[Fence],
    ) -> Result<Renewal>;

    /// Gives units back; this does not count against them. Repetition: stale.
    async fn release(&self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>>;

    /// Marks units as done. All their dialogues must have records before. Repetition: stale.
    async fn finish(&self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>>;

    /// Ends the leases of dead workers: their units are pending again or become suspects, and suspects get a strike. Every coordinator
    /// calls this about once a second. Repetition: ends those that expired since.
    async fn reap(&self, at: &RunRef, whose: &Reap) -> Result<Reaped>;

    /// The counts of each model, ordered by label; models without units and parkings are omitted.
    async fn counts(&self, at: &RunRef) -> Result<Vec<ModelCounts>>;

    /// Dead letters (with `dead`) or suspects, by id, above `after`, at most `limit`.
    async fn suspects(
        &self,
        at: &RunRef,
        dead: bool,
        after: Option<UnitId>,
        limit: u32,
    ) -> Result<Vec<Suspect>>;

    /// One suspect or dead letter.
    async fn suspect(&self, at: &RunRef, unit: UnitId) -> Result<Option<Suspect>>;

    /// Gives dead letters another chance, with a clean slate; returns how many there were. Repetition: 0, because
    /// they are not dead any more.
    async fn requeue(&self, at: &RunRef, units: &[UnitId]) -> Result<u64>;

    /// Leases out no unit of a model for a while, because its quota is used up. A later call replaces an earlier one.
    async fn park(&self, at: &RunRef, model: &ModelLabel, parked_for: Duration, reason: &str) -> Result<()>;

    /// Ends a parking early.
    async fn unpark(&self, at: &RunRef, model: &ModelLabel) -> Result<()>;

    /// Registers a worker, or renews its registration for `ttl`. Refused while the name is registered for another
    /// process, unless the claim names that process as a predecessor: a restart. [`crate::Error::WorkersFull`] if there is no
    /// place for another worker, or for another one of its identity.
    async fn heartbeat(
        &self,
        worker: &WorkerId,
        claim: &Claim,
        info: &[u8],
        ttl: Duration,
    ) -> Result<Heartbeat>;

    /// The registered workers, in the order of their ids.
    async fn workers(&self) -> Result<Vec<WorkerEntry>>;

    /// Asks a registered worker to drain at its next heartbeat; returns whether there is one.
    async fn drain_worker(&self, worker: &WorkerId) -> Result<bool>;

    /// Removes a worker that has ended, unless another process has taken over its name; returns whether the name was
    /// its own. Its leases stay until released or reaped. Repetition: the same.
    async fn deregister(&self, worker: &WorkerId, instance: &InstanceId) -> Result<bool>;

    /// Keeps what a conductor says of the pools of a release, for `ttl`. Refused above
    /// [`crate::limits::RELEASES_MAX`] releases. Repetition: the same.
    async fn note_pools(&self, release: &str, info: &[u8], ttl: Duration) -> Result<()>;

    /// What conductors say of pools, in the order of the releases.
    async fn pools(&self) -> Result<Vec<PoolsEntry>>;

    /// Takes permits of a budget that all workers share, all of them or none. Repetition: takes more; permits lost
    /// this way make calls slower, never faster.
    async fn take_rate(&self, bucket: &str, rate: RateLimit, permits: u32) -> Result<RateReply>;

    /// The store's clock, milliseconds since the Unix epoch. It is noted in the store, so that this fails where the store takes
    /// no writes.
    async fn now_ms(&self) -> Result<u64>;

    /// Whether the store is reachable and usable. The warnings say what it will do badly and how to fix it.
    async fn check(&self) -> Result<Vec<String>>;

    /// Whether this process leads the queue, as last known: only the leader answers anybody. Without others it does.
    ///
    /// # Errors
    /// Another one does, or nobody is known to.
    fn leads(&self) -> Result<()> {
        Ok(())
    }

    /// Lets this process lead only where this fence lets it, too. Called before the first operation.
    fn set_fence(&self, fence: Arc<dyn LeaderFence>) {
        drop(fence);
    }

    /// Ends leading, so that the next leader need not wait. Best effort.
    async fn leave(&self) {}

    /// Waits until another process leads that this one led; says so in a sentence. Without others it does not end.
    async fn until_followed(&self) -> String {
        std::future::pending().await
    }
}

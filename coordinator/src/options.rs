//! The configuration of a coordinator.

use std::sync::Arc;
use std::time::Duration;

use report::costs::Prices;

/// The runs for which a coordinator is responsible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One process with its own worker: only runs that are submitted or resumed in it, which no other process writes.
    Local,
    /// A fleet: every run of the sink that was submitted to a fleet, together with any number of other coordinators.
    Fleet,
}

/// The configuration of a coordinator.
#[derive(Clone, Debug, PartialEq)]
pub struct CoordinatorOptions {
    /// The runs for which it is responsible.
    pub scope: Scope,
    /// How long a lease lasts without renewal; workers report three times as often or more. 50 ms to 7 days.
    pub lease_for: Duration,
    /// Strikes that make a unit a dead letter, 1 to 100.
    pub max_strikes: u32,
    /// Time during which no lease is taken over after a start, or after the queue could not be reached or written: workers can renew
    /// first. Default: [`lease_for`](Self::lease_for).
    pub grace: Option<Duration>,
    /// How long the suspects of a model wait, with no other unit before them, until a worker is reserved for them.
    pub suspect_wait: Duration,
    /// Interval of the rounds that tend runs: take over expired leases, follow other coordinators, notice the end of runs.
    pub tend_every: Duration,
    /// Maximum age of the snapshot of the queue's counts, for waiting workers and watching users.
    pub backlog_for: Duration,
    /// Whether it tends runs periodically; tests trigger rounds one by one.
    pub tends: bool,
    /// What models cost, for metrics. Default: no model has a price.
    pub prices: Arc<Prices>,
}

impl CoordinatorOptions {
    /// For a run within one process.
    pub fn local() -> Self {
        // The user is waiting, and everything is local, so poll often.
        Self { scope: Scope::Local, tend_every: Duration::from_millis(100), ..Self::fleet() }
    }

    pub fn fleet() -> Self {
        Self {
            scope: Scope::Fleet,
            lease_for: Duration::from_secs(30),
            max_strikes: 3,
            grace: None,
            suspect_wait: Duration::from_secs(60),
            tend_every: Duration::from_secs(1),
            backlog_for: Duration::from_millis(250),
            tends: true,
            prices: Arc::default(),
        }
    }

    /// A worker reports at least this often.
    pub fn report_every(&self) -> Duration {
        match self.scope {
            Scope::Local => REPORT_EVERY_LOCAL.min(self.lease_for / 3),
            Scope::Fleet => self.lease_for / 3,
        }
    }
}

/// How often the worker of a local run reports, so that its user soon sees what calls wait for.
const REPORT_EVERY_LOCAL: Duration = Duration::from_secs(3);

/// What an operator assigns on purpose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adopt {
    /// The queue to this record store, whichever it belonged to.
    pub store: bool,
    /// The record store to this queue, whichever it accepted.
    pub queue: bool,
}

impl Adopt {
    /// What is not as it was is refused.
    pub const NOTHING: Self = Self { store: false, queue: false };
}

/// Maximum number of dialogues of a run; each takes 52 bytes in the coordinator, some 16 more where a cap counts it, and about 30 in
/// the queue.
pub const DIALOGUES_MAX: u64 = 5_000_000;

/// Maximum time that a call waits for work.
pub const WAIT_MAX: Duration = Duration::from_secs(30);

/// Maximum size of records on their way to the log, in bytes, over all workers; more have to wait. The longest record has
/// room, alone.
pub const BYTES_IN_FLIGHT_MAX: usize = 64 << 20;
const _: () = assert!(domain::record::RECORD_BYTES_MAX <= BYTES_IN_FLIGHT_MAX);

/// Maximum number of records in a call.
pub const DELIVERIES_PER_CALL_MAX: usize = 1_000;

//! What is decided when a coordinator starts.

use std::time::Duration;

/// Whose runs a coordinator looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One process with its own worker: only runs that are submitted or resumed here, which nobody else writes.
    Local,
    /// A fleet: every run of the sink that was given to a fleet, together with any number of other coordinators.
    Fleet,
}

/// What is decided when a coordinator starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinatorConfig {
    /// Whose runs it looks after.
    pub scope: Scope,
    /// How long a lease lasts without renewal; workers report three times as often. 50 ms to 7 days.
    pub lease_for: Duration,
    /// Strikes that make a unit a dead letter, 1 to 100.
    pub max_strikes: u32,
    /// How long no lease is taken over after a start, and after the queue could not be reached: workers get the time to
    /// renew first. Default: [`lease_for`](Self::lease_for).
    pub grace: Option<Duration>,
    /// How long the suspects of a model wait, with no other unit of it before them, until a worker is kept free for them.
    pub suspect_wait: Duration,
    /// Time between two rounds of looking after runs: taking over expired leases, following other coordinators,
    /// noticing the end of runs.
    pub tend_every: Duration,
    /// Age up to which a reading of the queue's counts is good enough, for all who wait for work and all who watch.
    pub backlog_for: Duration,
    /// Whether it looks after runs by itself; tests take the rounds one by one.
    pub tends: bool,
}

impl CoordinatorConfig {
    /// For a run within one process.
    pub fn local() -> Self {
        // The user is waiting, and everything is local, so poll often.
        Self { scope: Scope::Local, tend_every: Duration::from_millis(100), ..Self::fleet() }
    }

    /// For a fleet.
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
        }
    }

    /// A worker reports at least this often.
    pub fn report_every(&self) -> Duration {
        self.lease_for / 3
    }
}

/// Most dialogues of a run: what is kept of each takes 17 bytes in the coordinator and about 30 in the queue.
pub const MAX_DIALOGUES: u64 = 5_000_000;

/// Longest wait for work that a worker is granted in one call.
pub const MAX_WAIT: Duration = Duration::from_secs(30);

/// Bytes of records that are on their way to the log at once, over all workers; more have to wait.
pub const MAX_BYTES_IN_FLIGHT: usize = 48 << 20;

/// Records of one call.
pub const MAX_DELIVERIES_PER_CALL: usize = 1_000;

//! What is known of pools, their servers, and what there is to do. Times are durations since one instant that is the same for
//! all of them.

use std::time::Duration;

use crate::pool::failures::Failures;

/// A pool: the servers of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    pub name: String,
    /// Nodes that a server spans, one part on each; at least 1.
    pub parts: u32,
    /// GPUs of each part.
    pub gpus: u32,
    /// Servers at once, at most.
    pub servers_max: u32,
    /// How long a server loads until it serves: measured, or from the table of models.
    pub load: Duration,
    /// Dialogues per second of one server, from the table; a measured rate comes with the [`PoolNeed`].
    pub rate: f64,
}

impl Pool {
    /// GPUs of a server.
    pub fn server_gpus(&self) -> u32 {
        self.parts * self.gpus
    }

    /// Whether a server needs several nodes at once.
    pub fn is_gang(&self) -> bool {
        self.parts > 1
    }
}

/// What a pool has left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolNeed {
    /// Dialogues that can be asked now, and those that are being asked.
    pub now: u64,
    /// Dialogues per second of one server, where it was measured.
    pub rate: Option<f64>,
}

/// What coordinators said that there is to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// When they said so.
    pub read_at: Duration,
    /// By pool, in the order of [`PoolsView::pools`]; `None` where they do not know.
    pub of: Vec<Option<PoolNeed>>,
}

/// A server that has not ended: a Job with its pods.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolServer {
    /// Which of [`PoolsView::pools`] it is of.
    pub pool: usize,
    /// Its number in the pool, from 1.
    pub number: u32,
    pub created_at: Duration,
    pub phase: PoolServerPhase,
}

/// Where a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolServerPhase {
    /// A part of it has no node yet.
    Unscheduled,
    /// All parts have nodes since then; the model is being loaded.
    Loading {
        since: Duration,
    },
    Serving,
}

/// A pool with what happened to it.
#[derive(Clone, Debug)]
pub struct PoolView {
    pub pool: Pool,
    pub failures: Failures,
}

/// What may be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// GPUs of all servers that have not ended, those that wait for nodes included.
    pub gpus: u32,
    /// GPU-hours of all servers, ended ones included; `None`: no budget.
    pub gpu_hours: Option<f64>,
    /// How long a server of several nodes may wait for its nodes, while it holds some of them.
    pub gang_timeout: Duration,
    /// Whether something before the scheduler admits servers whole, as Kueue does.
    pub admits_whole: bool,
}

impl Limits {
    /// So many GPUs, without a budget, on a bare scheduler.
    pub fn of_gpus(gpus: u32) -> Self {
        Self { gpus, gpu_hours: None, gang_timeout: GANG_TIMEOUT, admits_whole: false }
    }
}

/// How long a server of several nodes waits for its nodes where nobody says otherwise.
pub const GANG_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// All that a decision is made of.
#[derive(Clone, Debug)]
pub struct PoolsView<'a> {
    pub now: Duration,
    /// `None`: coordinators have not answered yet.
    pub needs: Option<&'a Needs>,
    pub pools: &'a [PoolView],
    /// Those that have not ended.
    pub servers: &'a [PoolServer],
    pub limits: &'a Limits,
    /// GPU-hours that servers took so far.
    pub gpu_hours_used: f64,
}

//! The life of runs: their records are committed, they are paused, resumed, retried, finished and removed.
//!
//! `commit` stores records, `life` begins a run and changes its state, `commands` is what people ask for, `tend` the step of
//! a run in each round; `retry` and `dead_letters` ask again or give up.

pub(crate) mod commands;
pub(crate) mod commit;
pub(crate) mod dead_letters;
pub(crate) mod life;
pub(crate) mod retry;
pub(crate) mod tend;

use std::sync::Arc;

use crate::health::Health;
use crate::queue::client::QueueClient;
use crate::queue::signal::WorkSignal;
use crate::records::loaded::LoadedRuns;
use crate::records::packs::Packs;
use crate::records::store::Store;
use crate::runs::commit::RecordLogs;

/// What may happen to a run. Every step may be done twice.
pub(crate) struct Runs {
    pub health: Arc<Health>,
    pub store: Arc<Store>,
    pub packs: Arc<Packs>,
    pub loaded: Arc<LoadedRuns>,
    pub queue: Arc<QueueClient>,
    pub signal: Arc<WorkSignal>,
    pub logs: Arc<RecordLogs>,
    /// Held while a run is removed.
    pub removing: tokio::sync::Mutex<()>,
}

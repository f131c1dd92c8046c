//! What people see of benchmarks, runs and workers.
//!
//! `list` and `now` are the views of whatever has a name, `run` of a run and `benchmark` of a judged one, with their `progress`
//! and `history`. `dialogues` and `records` show what is in the log, `gauges` tells numbers to Prometheus.

pub(crate) mod benchmark;
pub mod dialogues;
pub(crate) mod gauges;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod now;
pub(crate) mod progress;
pub(crate) mod records;
pub(crate) mod run;

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::benchmarks::Benchmarks;
use crate::fleet::Fleet;
use crate::health::{Health, Uptime};
use crate::options::CoordinatorOptions;
use crate::queue::client::QueueClient;
use crate::records::loaded::LoadedRuns;
use crate::records::store::Store;

/// Dialogues read at once. The first look at a run reads its log, and a record may have 64 MiB.
pub(crate) const READINGS_MAX: usize = 2;

/// What is to be seen. Nothing is changed.
pub(crate) struct Views {
    options: CoordinatorOptions,
    clock: Uptime,
    health: Arc<Health>,
    store: Arc<Store>,
    loaded: Arc<LoadedRuns>,
    queue: Arc<QueueClient>,
    benchmarks: Arc<Benchmarks>,
    pub fleet: Arc<Fleet>,
    /// The right to read one record, see [`READINGS_MAX`].
    readings: Arc<Semaphore>,
}

impl Views {
    #[expect(clippy::too_many_arguments, reason = "it shows what all of them have")]
    pub(crate) fn new(
        options: CoordinatorOptions,
        clock: Uptime,
        health: Arc<Health>,
        store: Arc<Store>,
        loaded: Arc<LoadedRuns>,
        queue: Arc<QueueClient>,
        benchmarks: Arc<Benchmarks>,
        fleet: Arc<Fleet>,
    ) -> Self {
        let readings = Arc::new(Semaphore::new(READINGS_MAX));
        Self { options, clock, health, store, loaded, queue, benchmarks, fleet, readings }
    }
}

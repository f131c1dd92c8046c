//! Workers: what they report, what they hold, and what they are granted.
//!
//! `exchange` answers the reports of workers, `grants` finds units for the room that they offer, by `matching` models and
//! servers. `backlog` reads the `snapshot` of the queue that all of them share, `workers` what is known of them, `reservations`
//! keeps some free for suspects.

pub(crate) mod backlog;
pub(crate) mod exchange;
pub(crate) mod grants;
pub mod matching;
pub(crate) mod reservations;
pub(crate) mod snapshot;
pub(crate) mod workers;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::errors::Result;
use crate::fleet::reservations::SuspectReservations;
use crate::fleet::snapshot::BacklogReading;
use crate::fleet::workers::{RegisteredWorkers, Statuses};
use crate::health::{Health, Uptime};
use crate::options::CoordinatorOptions;
use crate::queue::client::QueueClient;
use crate::queue::signal::WorkSignal;
use crate::records::loaded::LoadedRuns;
use crate::records::store::Store;

/// The workers, and the work that waits for them.
pub(crate) struct Fleet {
    options: CoordinatorOptions,
    clock: Uptime,
    health: Arc<Health>,
    store: Arc<Store>,
    loaded: Arc<LoadedRuns>,
    queue: Arc<QueueClient>,
    signal: Arc<WorkSignal>,
    /// The latest snapshot of the queue's counts.
    latest: tokio::sync::Mutex<Option<BacklogReading>>,
    reservations: Mutex<SuspectReservations>,
    statuses: Statuses,
    /// Whether the coordinator is shutting down: calls no longer wait for work.
    closing: AtomicBool,
}

impl Fleet {
    pub(crate) fn new(
        options: CoordinatorOptions,
        clock: Uptime,
        health: Arc<Health>,
        store: Arc<Store>,
        loaded: Arc<LoadedRuns>,
        queue: Arc<QueueClient>,
        signal: Arc<WorkSignal>,
    ) -> Self {
        Self {
            options,
            clock,
            health,
            store,
            loaded,
            queue,
            signal,
            latest: tokio::sync::Mutex::default(),
            reservations: Mutex::default(),
            statuses: Statuses::default(),
            closing: AtomicBool::new(false),
        }
    }

    /// Lets calls that wait for work return without any, so that workers go to another coordinator.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.signal.touch();
    }

    /// The registered workers, as the queue knows them now.
    ///
    /// # Errors
    /// The queue cannot be reached.
    pub(crate) async fn workers(&self) -> Result<RegisteredWorkers> {
        let entries = self.health.note_queue(self.queue.raw().workers().await)?;
        Ok(self.statuses.read(entries))
    }
}

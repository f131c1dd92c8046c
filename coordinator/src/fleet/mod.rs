//! Workers: what they report, what they hold, and what they are granted.
//!
//! `exchange` answers the reports of workers, `grants` finds units for the room that they offer, by `matching` models and
//! servers; `share` divides the room among benchmarks, by whose `turns` it is. `backlog` reads the `snapshot` of the queue that
//! all of them share, `workers` what is known of them, `lost` who of them died, `pools` what conductors tell, `reservations` keeps some free for suspects. `outlook` says what models
//! have left, to workers that end when there is nothing.

pub(crate) mod backlog;
pub(crate) mod exchange;
pub(crate) mod grants;
pub mod lost;
pub mod matching;
pub(crate) mod outlook;
pub(crate) mod pools;
pub(crate) mod reservations;
pub(crate) mod share;
pub(crate) mod snapshot;
pub(crate) mod turns;
pub(crate) mod workers;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use std::time::Duration;

use domain::pools::PoolStates;

use crate::benchmarks::Benchmarks;
use crate::errors::{Result, internal};
use crate::fleet::lost::{LostWorker, LostWorkers};
use crate::fleet::pools::{KnownPools, POOLS_FRESH};
use crate::fleet::reservations::SuspectReservations;
use crate::fleet::share::FairShares;
use crate::fleet::snapshot::BacklogReading;
use crate::fleet::workers::{RegisteredWorkers, Statuses};
use crate::health::{Health, Uptime};
use crate::options::{CoordinatorOptions, WAIT_MAX};
use crate::queue::client::QueueClient;
use crate::queue::signal::WorkSignal;
use crate::records::loaded::LoadedRuns;

/// The workers, and the work that waits for them.
pub(crate) struct Fleet {
    options: CoordinatorOptions,
    clock: Uptime,
    health: Arc<Health>,
    loaded: Arc<LoadedRuns>,
    queue: Arc<QueueClient>,
    signal: Arc<WorkSignal>,
    benchmarks: Arc<Benchmarks>,
    /// The latest snapshot of the queue's counts.
    latest: tokio::sync::Mutex<Option<BacklogReading>>,
    reservations: Mutex<SuspectReservations>,
    statuses: Statuses,
    lost: Mutex<LostWorkers>,
    pub(crate) shares: FairShares,
    /// Whether the coordinator is shutting down: calls no longer wait for work.
    closing: AtomicBool,
}

impl Fleet {
    pub(crate) fn new(
        options: CoordinatorOptions,
        clock: Uptime,
        health: Arc<Health>,
        loaded: Arc<LoadedRuns>,
        queue: Arc<QueueClient>,
        signal: Arc<WorkSignal>,
        benchmarks: Arc<Benchmarks>,
    ) -> Self {
        Self {
            options,
            clock,
            health,
            loaded,
            queue,
            signal,
            benchmarks,
            latest: tokio::sync::Mutex::default(),
            reservations: Mutex::default(),
            statuses: Statuses::default(),
            lost: Mutex::default(),
            shares: FairShares::default(),
            closing: AtomicBool::new(false),
        }
    }

    /// Lets calls that wait for work return without any, so that workers go to another coordinator.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.signal.touch();
    }

    /// The registered workers and the pools, as the queue knows them now.
    ///
    /// # Errors
    /// The queue cannot be reached.
    pub(crate) async fn workers(&self) -> Result<RegisteredWorkers> {
        let entries = self.health.note_queue(self.queue.raw().workers().await)?;
        let pools = self.health.note_queue(self.queue.raw().pools().await)?;
        let mut workers = self.statuses.read(entries);
        workers.pools = KnownPools::of(&pools);
        Ok(workers)
    }

    /// Notes which workers were lost since the round before, at this time of the store's clock.
    ///
    /// # Errors
    /// The queue cannot be reached.
    pub(crate) async fn note_lost(&self, now_ms: u64) -> Result<()> {
        let workers = self.workers().await?;
        self.lost_workers().note(&workers.members, now_ms, self.registered_for());
        Ok(())
    }

    /// Workers that were lost in the last hour, the latest first.
    pub(crate) fn lost(&self) -> Vec<LostWorker> {
        self.lost_workers().latest()
    }

    fn lost_workers(&self) -> MutexGuard<'_, LostWorkers> {
        // Plain values are whole at any moment, also where a panic passed through.
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a worker is registered after its last report.
    fn registered_for(&self) -> Duration {
        self.options.lease_for.max(WAIT_MAX)
    }

    /// Takes what a conductor tells.
    ///
    /// # Errors
    /// It is too much; the queue cannot be reached.
    pub(crate) async fn note_pools(&self, states: &PoolStates) -> Result<()> {
        let info = serde_json::to_vec(states).map_err(internal)?;
        self.health.note_queue(self.queue.raw().note_pools(&states.release, &info, POOLS_FRESH).await)
    }
}

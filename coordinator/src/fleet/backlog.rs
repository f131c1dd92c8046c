//! A shared snapshot of the pending work in the queue.
//!
//! A thousand waiting workers must not query the queue a thousand times. One call reads the counts of all runs, at most
//! every quarter of a second, and all others use this snapshot. A call that goes to the queue first subtracts what it
//! expects to get from the snapshot, so that ten waiting units do not attract a thousand workers.

use std::sync::{Arc, PoisonError};

use domain::control::RunPhase;
use tokio::time::Instant;

use crate::errors::Result;
use crate::fleet::Fleet;
use crate::fleet::snapshot::{BacklogReading, ModelBacklog, RunBacklog, Snapshot};

impl Fleet {
    /// The snapshot, at most [`backlog_for`](crate::CoordinatorOptions::backlog_for) old, and not older than the last change
    /// that was signalled in this process.
    pub(crate) async fn backlog(&self) -> Result<Arc<Snapshot>> {
        let mut reading = self.latest.lock().await;
        let changes = self.signal.count();
        if let Some(known) = &*reading
            && known.at.elapsed() < self.options.backlog_for
            && known.changes == changes
        {
            return known.snapshot.clone();
        }
        let snapshot = self.read_backlog().await.map(Arc::new);
        // An error is kept as long, so that a queue that is down is not queried for every worker.
        *reading = Some(BacklogReading { at: Instant::now(), changes, snapshot: snapshot.clone() });
        snapshot
    }

    async fn read_backlog(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        for run in self.loaded.live() {
            let counts = self.queue.call(&run, |queue, at| async move { queue.counts(&at).await }).await;
            let Some(counts) = self.health.apart(run.id(), counts)? else { continue };
            let active = run.phase() == RunPhase::Active && self.benchmarks.caps.reached(&run).is_none();
            let of_model = |spec: &domain::ModelSpec| {
                let counts = counts.iter().find(|counts| counts.model == spec.label).cloned();
                ModelBacklog::of(counts, active)
            };
            let models: Vec<ModelBacklog> = run.models.iter().map(of_model).collect();
            let mut reservations = self.reservations.lock().unwrap_or_else(PoisonError::into_inner);
            for (spec, model) in run.models.iter().zip(&models) {
                reservations.observe(run.id(), &spec.label, model.suspects_in_turn(), self.clock.now());
            }
            drop(reservations);
            snapshot.runs.push(RunBacklog { run, models });
        }
        Ok(snapshot)
    }
}

//! A shared snapshot of the pending work in the queue.
//!
//! A thousand waiting workers must not query the queue a thousand times. One call reads the counts of all runs, at most
//! every quarter of a second, and all others use this snapshot. A call that goes to the queue first subtracts what it
//! expects to get from the snapshot, so that ten waiting units do not attract a thousand workers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use tokio::sync::Mutex;
use tokio::time::Instant;

use domain::control::RunPhase;
use queue::ModelCounts;

use crate::coordinator::Coordinator;
use crate::errors::Result;
use crate::records::run::Run;

/// The latest snapshot.
#[derive(Default)]
pub(crate) struct Backlog(Mutex<Option<BacklogReading>>);

/// A snapshot with the circumstances in which it was read.
struct BacklogReading {
    at: Instant,
    /// The changes that were signalled before.
    changes: u64,
    snapshot: Result<Arc<Snapshot>>,
}

/// The counts of the queue at one moment.
#[derive(Default)]
pub(crate) struct Snapshot {
    /// Runs that are not over, older ones first.
    pub runs: Vec<RunBacklog>,
}

/// The pending work of a run.
pub(crate) struct RunBacklog {
    pub run: Arc<Run>,
    /// By model, in the order of the plan.
    pub models: Vec<ModelBacklog>,
}

/// The pending work of a model.
pub(crate) struct ModelBacklog {
    /// The queue's counts, if it has any.
    pub counts: Option<ModelCounts>,
    /// Units not yet claimed from this snapshot, without suspects.
    claimable: AtomicU64,
    /// Suspects not yet claimed from this snapshot.
    suspects: AtomicU64,
}

impl ModelBacklog {
    pub(crate) fn of(counts: Option<ModelCounts>, active: bool) -> Self {
        let ready = counts.as_ref().filter(|counts| active && counts.parked.is_none());
        let suspects = ready.map_or(0, |counts| counts.suspects_pending);
        let others = ready.map_or(0, |counts| counts.pending - counts.suspects_pending);
        Self { claimable: AtomicU64::new(others), suspects: AtomicU64::new(suspects), counts }
    }

    /// Suspects of the snapshot with no other unit before them.
    fn suspects_in_turn(&self) -> u64 {
        let others = self.claimable.load(Ordering::Acquire);
        if others == 0 { self.suspects.load(Ordering::Acquire) } else { 0 }
    }

    /// Claims a suspect of the snapshot, if there is one.
    pub(crate) fn claim_suspect(&self) -> bool {
        let take = |left: u64| left.checked_sub(1);
        self.suspects.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
    }

    /// Claims up to `wanted` units of the snapshot.
    pub(crate) fn claim(&self, wanted: u64) -> u64 {
        let take = |left: u64| Some(left.saturating_sub(wanted));
        let before = self.claimable.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        before.unwrap_or_default().min(wanted)
    }

    /// Average number of dialogues per unit, at least 1.
    pub(crate) fn dialogues_per_unit(&self) -> u64 {
        let Some(counts) = &self.counts else { return 1 };
        (counts.backlog_dialogues / (counts.pending + counts.leased).max(1)).max(1)
    }
}

impl Coordinator {
    /// The snapshot, at most [`backlog_for`](crate::CoordinatorOptions::backlog_for) old, and not older than the last change
    /// that was signalled in this process.
    pub(crate) async fn backlog(&self) -> Result<Arc<Snapshot>> {
        let mut reading = self.backlog.0.lock().await;
        let changes = self.signal.count();
        if let Some(known) = &*reading
            && known.at.elapsed() < self.config.backlog_for
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
        for run in self.runs.live() {
            let counts = self.queues.call(&run, |queue, at| async move { queue.counts(&at).await }).await;
            let Some(counts) = self.health.apart(run.id(), counts)? else { continue };
            let active = run.phase() == RunPhase::Active;
            let of_model = |spec: &domain::ModelSpec| {
                let counts = counts.iter().find(|counts| counts.model == spec.label).cloned();
                ModelBacklog::of(counts, active)
            };
            let models: Vec<ModelBacklog> = run.models.iter().map(of_model).collect();
            let mut patience = self.patience.lock().unwrap_or_else(PoisonError::into_inner);
            for (spec, model) in run.models.iter().zip(&models) {
                patience.observe(run.id(), &spec.label, model.suspects_in_turn(), self.clock.now());
            }
            drop(patience);
            snapshot.runs.push(RunBacklog { run, models });
        }
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_goes_for_what_others_have_gone_for() {
        let counts = ModelCounts {
            model: "m".into(),
            added: 9,
            pending: 6,
            suspects_pending: 1,
            suspects_leased: 0,
            leased: 0,
            dead: 0,
            done: 3,
            backlog_dialogues: 25,
            scored: 0,
            failed: 0,
            parked: None,
        };
        let backlog = ModelBacklog::of(Some(counts.clone()), true);
        assert_eq!(backlog.dialogues_per_unit(), 4);
        assert_eq!(backlog.suspects_in_turn(), 0);
        assert_eq!([backlog.claim(3), backlog.claim(3), backlog.claim(3)], [3, 2, 0]);
        assert_eq!(backlog.suspects_in_turn(), 1);
        assert_eq!([backlog.claim_suspect(), backlog.claim_suspect()], [true, false]);
        assert_eq!(ModelBacklog::of(Some(counts.clone()), false).claim(1), 0);
        let parked = queue::Parked { reason: "quota".into(), until_ms: 1 };
        assert_eq!(ModelBacklog::of(Some(ModelCounts { parked: Some(parked), ..counts }), true).claim(1), 0);
    }
}

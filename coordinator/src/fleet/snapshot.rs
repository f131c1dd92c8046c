//! The counts of the queue at one moment, less what callers have claimed since. A claim changes these numbers only: its caller
//! still has to lease units from the queue, and may get fewer. `backlog` reads snapshots and replaces them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use queue::ModelCounts;
use tokio::time::Instant;

use crate::errors::Result;
use crate::records::run::Run;

/// A snapshot with the circumstances in which it was read.
pub(crate) struct BacklogReading {
    pub at: Instant,
    /// The changes that were signalled before.
    pub changes: u64,
    pub snapshot: Result<Arc<Snapshot>>,
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
    pub(crate) fn suspects_in_turn(&self) -> u64 {
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

    /// Units of the snapshot that nobody has gone for, suspects apart.
    pub(crate) fn waiting(&self) -> u64 {
        self.claimable.load(Ordering::Acquire)
    }

    /// Average number of dialogues per unit, at least 1.
    pub(crate) fn dialogues_per_unit(&self) -> u64 {
        let Some(counts) = &self.counts else { return 1 };
        (counts.backlog_dialogues / (counts.pending + counts.leased).max(1)).max(1)
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

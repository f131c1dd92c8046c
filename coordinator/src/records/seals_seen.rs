//! What is remembered of the seals of finished runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::RunId;

/// What the seals of a finished run said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealSight {
    Closed,
    Reopened,
}

/// The seals of finished runs as they were seen last. Without it, a coordinator only looks again.
#[derive(Debug, Default)]
pub(crate) struct SealsSeen(Mutex<BTreeMap<RunId, SealSight>>);

impl SealsSeen {
    /// Forgets all runs but these.
    pub(crate) fn keep(&self, is_there: impl Fn(&RunId) -> bool) {
        self.seen().retain(|run, _| is_there(run));
    }

    /// A run is reopened here: it has to be looked at again.
    pub(crate) fn forget(&self, run: &RunId) {
        self.seen().remove(run);
    }

    pub(crate) fn last(&self, run: &RunId) -> Option<SealSight> {
        self.seen().get(run).copied()
    }

    pub(crate) fn note(&self, run: &RunId, sight: SealSight) {
        self.seen().insert(run.clone(), sight);
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<RunId, SealSight>> {
        // Plain values are whole at any moment, also where a panic passed through.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

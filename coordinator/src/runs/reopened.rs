//! Finished runs that a command reopened without letting them go on, because whoever carried it out died over that: new
//! records could still displace those that count.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::RunId;

use crate::errors::Result;
use crate::runs::Runs;

/// What the seals of a finished run said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SealSight {
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

    fn seen(&self) -> MutexGuard<'_, BTreeMap<RunId, SealSight>> {
        // Plain values are whole at any moment, also where a panic passed through.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runs {
    /// Fixes the records that count of a finished run, if they are not. Asked from time to time, it looks at each run until it
    /// is closed, and closes one that was reopened at its last look already: whoever reopened it then would have let it go on
    /// by now.
    pub(crate) async fn expect_closed(&self, run: &RunId) -> Result<()> {
        let before = self.seals_seen.seen().get(run).copied();
        if before == Some(SealSight::Closed) {
            return Ok(());
        }
        let last = self.health.note_sink(self.store.sink.last_seal(run).await)?;
        // Seals close and reopen in turn. Runs of versions before seals have none.
        let sight = if last == 0 || last % 2 == 1 { SealSight::Closed } else { SealSight::Reopened };
        self.seals_seen.seen().insert(run.clone(), sight);
        if (before, sight) == (Some(SealSight::Reopened), SealSight::Reopened) {
            tracing::info!(%run, "a command reopened it and came to nothing: it is closed again");
            let run = self.loaded.newest(run).await?;
            self.close_again(&run).await?;
        }
        Ok(())
    }
}

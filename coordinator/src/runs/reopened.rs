//! Finished runs that a command reopened without letting them go on, because whoever carried it out died over that: new
//! records could still displace those that count.

use domain::RunId;

use crate::errors::Result;
use crate::records::seals_seen::SealSight;
use crate::runs::Runs;

impl Runs {
    /// Fixes the records that count of a finished run, if they are not. Asked from time to time, it looks at each run until it
    /// is closed, and closes one that was reopened at its last look already: whoever reopened it then would have let it go on
    /// by now.
    pub(crate) async fn expect_closed(&self, run: &RunId) -> Result<()> {
        let before = self.seals_seen.last(run);
        if before == Some(SealSight::Closed) {
            return Ok(());
        }
        let last = self.health.note_sink(self.store.sink.last_seal(run).await)?;
        // Seals close and reopen in turn. Runs of versions before seals have none.
        let sight = if last == 0 || last % 2 == 1 { SealSight::Closed } else { SealSight::Reopened };
        self.seals_seen.note(run, sight);
        if (before, sight) == (Some(SealSight::Reopened), SealSight::Reopened) {
            tracing::info!(%run, "a command reopened it and came to nothing: it is closed again");
            let run = self.loaded.newest(run).await?;
            self.close_again(&run).await?;
        }
        Ok(())
    }
}

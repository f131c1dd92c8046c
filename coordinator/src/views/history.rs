//! Who did what to a benchmark or a run.

use domain::RunId;
use domain::control::HistoryEntry;

use crate::errors::Result;
use crate::records::run::Run;
use crate::views::Views;

/// What the history says of a submission.
pub(crate) const SUBMITTED: &str = "submitted";

impl Views {
    /// Adds an entry to the history of a run or pipeline.
    pub(crate) async fn note_history(&self, run: &RunId, entry: &HistoryEntry) -> Result<()> {
        self.benchmarks.note_history(run, entry).await?;
        if entry.what == SUBMITTED {
            self.fleet.shares.learn(run.clone(), entry.who.clone());
        }
        Ok(())
    }

    /// Learns who submitted the benchmarks that go on: work is shared between submitters. Until they are known, and with
    /// `again` they are looked for once more, benchmarks share like those of one submitter.
    pub(crate) async fn learn_submitters(&self, again: bool) {
        let live = self.loaded.live();
        let live = live.iter().map(|run| run.id().clone());
        for benchmark in self.fleet.shares.unknown(live, again) {
            let history = self.benchmarks.history(&benchmark).await.unwrap_or_default();
            let submitted = history.into_iter().find(|entry| entry.what == SUBMITTED);
            self.fleet.shares.learn(benchmark, submitted.map(|entry| entry.who).unwrap_or_default());
        }
    }

    /// The history of a run; empty if it cannot be read now.
    pub(crate) async fn history(&self, run: &Run) -> Vec<HistoryEntry> {
        self.store.sink.history(run.id()).await.unwrap_or_default()
    }
}

//! Who did what to a benchmark or a run.

use domain::RunId;
use domain::control::HistoryEntry;

use crate::errors::Result;
use crate::records::run::Run;
use crate::views::Views;

impl Views {
    /// Adds an entry to the history of a run or pipeline.
    pub(crate) async fn note_history(&self, run: &RunId, entry: &HistoryEntry) -> Result<()> {
        self.benchmarks.note_history(run, entry).await?;
        if let Some(run) = self.loaded.get(run) {
            *run.history.lock().await = None;
        }
        Ok(())
    }

    /// The history of a run or pipeline, as it is now.
    pub(crate) async fn history_now(&self, run: &RunId) -> Result<Vec<HistoryEntry>> {
        self.benchmarks.history(run).await
    }

    /// The history of a run, cached so that watching users do not query an object store again and again.
    pub(crate) async fn history(&self, run: &Run) -> Vec<HistoryEntry> {
        let mut read = run.history.lock().await;
        if let Some((at, history)) = &*read
            && !self.store.sink.has_locks()
            && self.clock.now() < *at + self.options.tend_every
        {
            return history.clone();
        }
        let history = self.store.sink.history(run.id()).await.unwrap_or_default();
        *read = Some((self.clock.now(), history.clone()));
        history
    }
}

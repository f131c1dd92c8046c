//! The history of a benchmark: who did what to it.

use domain::RunId;
use domain::control::HistoryEntry;
use futures::{StreamExt, TryStreamExt};
use results::sink::{ENTRIES_READ_MAX, history_file};

use crate::benchmarks::Benchmarks;
use crate::benchmarks::documents::Benchmark;
use crate::errors::{Result, internal};

/// Beginning of the names of a judged benchmark's entries.
const HISTORY: &str = "history-";

/// Maximum number of entries read at once.
const READS_MAX: usize = 8;

impl Benchmarks {
    /// Adds an entry. Of a judged benchmark, each is a document.
    pub(crate) async fn note_history(&self, name: &RunId, entry: &HistoryEntry) -> Result<()> {
        if let Benchmark::Run(run) = self.find(name).await? {
            return Ok(self.store.sink.append_history(&run, entry).await?);
        }
        let content = serde_json::to_vec(entry).map_err(internal)?;
        let document = format!("{HISTORY}{}", history_file(entry));
        self.store.create_document(name, &document, content).await.map(drop)
    }

    /// The latest entries, oldest first.
    pub(crate) async fn history(&self, name: &RunId) -> Result<Vec<HistoryEntry>> {
        match self.find(name).await? {
            Benchmark::Run(run) => Ok(self.store.sink.history(&run).await?),
            Benchmark::Judged(benchmark) => self.judged_history(&benchmark.name).await,
        }
    }

    /// The same of a judged benchmark.
    pub(crate) async fn judged_history(&self, name: &RunId) -> Result<Vec<HistoryEntry>> {
        let mut documents = self.store.documents(name, HISTORY).await?;
        let documents = documents.split_off(documents.len().saturating_sub(ENTRIES_READ_MAX));
        let read = |document: String| async move {
            match self.store.document(name, &document).await {
                // As of a run, an entry that cannot be read hides nothing else.
                Err(error) if !error.code.is_transient() => Ok(None),
                entry => entry,
            }
        };
        let found = futures::stream::iter(documents).map(read).buffered(READS_MAX);
        found.try_filter_map(|entry| std::future::ready(Ok(entry))).try_collect().await
    }

    /// Removes the history of a judged benchmark.
    pub(crate) async fn remove_history(&self, name: &RunId) -> Result<()> {
        for document in self.store.documents(name, HISTORY).await? {
            self.store.remove_document(name, &document).await?;
        }
        Ok(())
    }
}

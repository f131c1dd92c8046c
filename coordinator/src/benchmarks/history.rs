//! The history of a pipeline: who did what to it. Each entry is a document.

use domain::RunId;
use domain::control::HistoryEntry;
use futures::{StreamExt, TryStreamExt};
use results::sink::{ENTRIES_READ_MAX, history_file};

use crate::benchmarks::Benchmarks;
use crate::errors::{Result, internal};

/// Beginning of the names of its documents.
const HISTORY: &str = "history-";

/// Maximum number of entries read at once.
const READS_MAX: usize = 8;

impl Benchmarks {
    /// Adds an entry to the history of a pipeline.
    pub(crate) async fn note_pipeline(&self, name: &RunId, entry: &HistoryEntry) -> Result<()> {
        let content = serde_json::to_vec(entry).map_err(internal)?;
        let document = format!("{HISTORY}{}", history_file(entry));
        self.store.create_document(name, &document, content).await.map(drop)
    }

    /// The latest entries of the history of a pipeline, oldest first.
    pub(crate) async fn pipeline_history(&self, name: &RunId) -> Result<Vec<HistoryEntry>> {
        let mut documents = self.store.documents(name, HISTORY).await?;
        let documents = documents.split_off(documents.len().saturating_sub(ENTRIES_READ_MAX));
        let read = |document: String| async move { self.store.document(name, &document).await };
        let found = futures::stream::iter(documents).map(read).buffered(READS_MAX);
        found.try_filter_map(|entry| std::future::ready(Ok(entry))).try_collect().await
    }

    /// Removes the history of a pipeline.
    pub(crate) async fn remove_history(&self, name: &RunId) -> Result<()> {
        for document in self.store.documents(name, HISTORY).await? {
            self.store.remove_document(name, &document).await?;
        }
        Ok(())
    }
}

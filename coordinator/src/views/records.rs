//! Exports the records that count in the order of the plan, by their places in the log.

use std::path::Path;
use std::sync::Arc;

use domain::RunId;
use domain::control::{ExportItem, Feed};
use futures::{StreamExt, stream};
use results::log::PlaceReader;
use serde::de::IgnoredAny;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::errors::{Result, internal};
use crate::records::dialogues::DialogueTable;
use crate::records::run::Run;
use crate::views::Views;

/// Maximum number of records read ahead of the caller.
const READ_AHEAD: usize = 32;

/// Maximum bytes of these records. A longer record is read ahead alone: callers who take nothing would hold dozens of them.
const READ_AHEAD_BYTES: usize = 1 << 20;

/// An item that was read ahead, and its share of [`READ_AHEAD_BYTES`].
type Ahead = (Result<ExportItem>, Option<OwnedSemaphorePermit>);

impl Views {
    /// Of each run, the manifest and every record that counts; of a judged benchmark, its documents before them.
    pub(crate) fn records<'a>(&'a self, name: &'a RunId) -> Feed<'a, ExportItem> {
        Box::pin(stream::once(self.benchmarks.copy_of(name)).flat_map(
            move |copied| -> Feed<'a, ExportItem> {
                let (documents, runs) = match copied {
                    Err(error) => return Box::pin(stream::once(std::future::ready(Err(error)))),
                    Ok(None) => (None, vec![name.clone()]),
                    Ok(Some((copy, json))) => (Some(ExportItem::Documents(json.into())), copy.into_runs()),
                };
                let runs = stream::iter(runs).flat_map(|run| self.export(run));
                Box::pin(stream::iter(documents.map(Ok)).chain(runs))
            },
        ))
    }

    /// The manifest, then every record that counts.
    fn export(&self, id: RunId) -> Feed<'_, ExportItem> {
        Box::pin(stream::unfold(Step::Begin(id), move |step| async move {
            let mut items = match step {
                Step::Begin(id) => match self.begin_export(&id).await {
                    Ok(items) => items,
                    Err(error) => return Some((Err(error), Step::End)),
                },
                Step::Going(items) => items,
                Step::End => return None,
            };
            let (item, _) = items.recv().await?;
            let next = if item.is_ok() { Step::Going(items) } else { Step::End };
            Some((item, next))
        }))
    }

    async fn begin_export(&self, id: &RunId) -> Result<mpsc::Receiver<Ahead>> {
        let run = self.loaded.known(id).await?;
        let folder = self.store.sink.run_dir(id)?.log();
        let (items, receiver) = mpsc::channel(READ_AHEAD);
        // Ends when the caller drops the receiver.
        tokio::task::spawn_blocking(move || {
            if let Err(error) = read(&run, &folder, &items) {
                let _ = items.blocking_send((Err(error), None));
            }
        });
        Ok(receiver)
    }
}

enum Step {
    Begin(RunId),
    Going(mpsc::Receiver<Ahead>),
    End,
}

fn read(run: &Run, folder: &Path, items: &mpsc::Sender<Ahead>) -> Result<()> {
    let manifest = serde_json::to_string(&run.manifest).map_err(internal)?;
    if items.blocking_send((Ok(ExportItem::Manifest(manifest.into())), None)).is_err() {
        return Ok(());
    }
    let (room, runtime) = (Arc::new(Semaphore::new(READ_AHEAD_BYTES)), Handle::current());
    let mut reader = PlaceReader::new(folder, run.cipher.as_ref());
    for location in run.table(DialogueTable::locations).into_iter().flatten() {
        let (_, json) = run.read::<IgnoredAny>(&mut reader, location)?;
        let item = ExportItem::Record(Arc::from(&*json));
        // Who waits here goes on when the caller takes items, or is gone with those that were for him.
        let bytes = json.len().min(READ_AHEAD_BYTES) as u32;
        let share = runtime.block_on(Arc::clone(&room).acquire_many_owned(bytes)).ok();
        if items.blocking_send((Ok(item), share)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

//! The records that count, in the order of the plan, with memory for their places only.

use std::path::Path;
use std::sync::Arc;

use domain::RunId;
use domain::control::{ExportItem, Feed};
use futures::stream;
use results::log::{Location, LogTail, PlaceReader, RecordHead, TailPart};
use serde::de::IgnoredAny;
use tokio::sync::mpsc;

use crate::core::Core;
use crate::errors::{Result, internal};
use crate::run::Run;

/// Records that are read ahead of the caller.
const READ_AHEAD: usize = 32;

/// The place of a record, by the order in which records of one dialogue count.
type Place = Option<(bool, u64, Location)>;

impl Core {
    /// The manifest, then every record that counts.
    pub(crate) fn export<'a>(self: &'a Arc<Self>, id: &'a RunId) -> Feed<'a, ExportItem> {
        Box::pin(stream::unfold(Step::Begin, move |step| async move {
            let mut items = match step {
                Step::Begin => match self.begin_export(id).await {
                    Ok(items) => items,
                    Err(error) => return Some((Err(error), Step::End)),
                },
                Step::Going(items) => items,
                Step::End => return None,
            };
            let item = items.recv().await?;
            let next = if item.is_ok() { Step::Going(items) } else { Step::End };
            Some((item, next))
        }))
    }

    async fn begin_export(&self, id: &RunId) -> Result<mpsc::Receiver<Result<ExportItem>>> {
        let run = self.known(id).await?;
        self.storage.refresh(id).await?;
        let folder = self.storage.log_folder(id)?;
        let (items, receiver) = mpsc::channel(READ_AHEAD);
        // Ends when the receiver is dropped: a caller that leaves stops the reading.
        tokio::task::spawn_blocking(move || {
            if let Err(error) = read(&run, &folder, &items) {
                let _ = items.blocking_send(Err(error));
            }
        });
        Ok(receiver)
    }
}

enum Step {
    Begin,
    Going(mpsc::Receiver<Result<ExportItem>>),
    End,
}

fn read(run: &Run, folder: &Path, items: &mpsc::Sender<Result<ExportItem>>) -> Result<()> {
    let manifest = serde_json::to_string(&run.manifest).map_err(internal)?;
    if items.blocking_send(Ok(ExportItem::Manifest(manifest.into()))).is_err() {
        return Ok(());
    }
    let mut reader = PlaceReader::new(folder, run.cipher.as_ref());
    for (_, ticket, place) in places(run, folder)?.into_iter().flatten() {
        let parsed = reader.read::<IgnoredAny>(place).map_err(internal)?;
        let parsed = parsed.ok_or_else(|| internal(format!("a record of run {} has moved", run.id())))?;
        let item = ExportItem::Record { ticket, json: Arc::from(&*parsed.json) };
        if items.blocking_send(Ok(item)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Where the record that counts lies, for every dialogue.
fn places(run: &Run, folder: &Path) -> Result<Vec<Place>> {
    let mut places: Vec<Place> = vec![None; run.layout.slots()];
    let mut tail = LogTail::new(folder, run.cipher.as_ref(), None);
    while let Some(part) = tail.poll().map_err(internal)? {
        // Damage was told of when the run was loaded.
        let TailPart::Lines(mut lines) = part else { continue };
        while let Some(line) = lines.next() {
            let Ok(parsed) = line.parse::<RecordHead>() else { continue };
            let Some(slot) = run.layout.slot_of(&parsed.record.key) else { continue };
            let place = (!parsed.record.outcome.is_scored(), parsed.ticket, line.location());
            if places[slot].is_none_or(|standing| place < standing) {
                places[slot] = Some(place);
            }
        }
    }
    Ok(places)
}

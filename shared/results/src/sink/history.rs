//! Who did what to a run: one small file or object for each entry, written once, so that any number of coordinators
//! append without seeing each other and nobody rewrites what was noted.

use std::fs;
use std::io;

use bytes::Bytes;
use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use domain::RunId;
use domain::control::HistoryEntry;

use super::folder::Folder;
use super::{Kind, Sink, SinkError, blocking};

/// Entries that are read, the newest of them.
const ENTRIES_READ_MAX: usize = 1_000;

impl Sink {
    /// Notes what somebody did to a run. It is durable when this returns.
    ///
    /// # Errors
    /// No such run; the sink cannot be written.
    pub async fn append_history(&self, run: &RunId, entry: &HistoryEntry) -> Result<(), SinkError> {
        // Names come in the order of time; two of the same microsecond differ.
        let name = format!("{:020}-{:08x}.json", entry.at.as_microsecond().max(0), OsRng.next_u32());
        let content = serde_json::to_vec(entry)
            .map_err(|source| SinkError::Json { place: format!("the history of run {run}"), source })?;
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, run) = (folder.clone(), run.clone());
                blocking(move || folder.append_history(&run, &name, &content)).await
            }
            Kind::Objects(objects) => objects.append_history(run, &name, content.into()).await,
        }
    }

    /// What was done to a run, oldest first: the last [`ENTRIES_READ_MAX`] entries. What cannot be read is left out.
    pub async fn history(&self, run: &RunId) -> Result<Vec<HistoryEntry>, SinkError> {
        let found: Vec<Bytes> = match &self.0 {
            Kind::Folder(folder) => {
                let (folder, run) = (folder.clone(), run.clone());
                blocking(move || folder.history(&run)).await?
            }
            Kind::Objects(objects) => objects.history(run).await?,
        };
        Ok(found.iter().filter_map(|entry| serde_json::from_slice(entry).ok()).collect())
    }
}

/// The names of the newest entries, oldest first.
pub(super) fn newest(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    let surplus = names.len().saturating_sub(ENTRIES_READ_MAX);
    names.split_off(surplus)
}

impl Folder {
    fn append_history(&self, run: &RunId, name: &str, content: &[u8]) -> Result<(), SinkError> {
        let folder = self.existing(run)?.history();
        fs::create_dir_all(&folder).map_err(|error| SinkError::io(&folder, "create", error))?;
        super::folder::replace(&folder.join(name), content)
    }

    fn history(&self, run: &RunId) -> Result<Vec<Bytes>, SinkError> {
        let folder = self.run_dir(run)?.history();
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| SinkError::io(&folder, "list", error))?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let names = newest(names.filter(|name| name.ends_with(".json")).collect());
        Ok(names.iter().filter_map(|name| fs::read(folder.join(name)).ok()).map(Bytes::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn what_was_noted_stays_in_its_order_wherever_it_is_kept() {
        let (data, mirror) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Sink::store(Arc::new(InMemory::new()), "p".into(), mirror.path());
        for sink in [Sink::folder(data.path()), store] {
            let run = RunId::new("a");
            let entry = |second: i64, what: &str| HistoryEntry {
                at: jiff::Timestamp::from_second(second).unwrap(),
                who: "alice".to_owned(),
                what: what.to_owned(),
            };
            assert!(sink.append_history(&run, &entry(1, "submitted")).await.is_err(), "no such run");
            sink.create_run(&testing::manifest("a")).await.unwrap();
            assert_eq!(sink.history(&run).await.unwrap(), []);
            let entries =
                [entry(1, "submitted"), entry(2, "paused"), entry(2, "cancelled"), entry(10, "resumed")];
            for entry in [&entries[3], &entries[0], &entries[1], &entries[2]] {
                sink.append_history(&run, entry).await.unwrap();
            }
            let mut found = sink.history(&run).await.unwrap();
            assert_eq!((&found[0], &found[3]), (&entries[0], &entries[3]));
            found.retain(|entry| entry.at == entries[1].at);
            assert_eq!(found.len(), 2, "two of the same moment are both there");
        }
    }
}

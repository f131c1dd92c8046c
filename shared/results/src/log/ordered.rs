//! A run's winning records in the order of its plan. Readers of result files depend on this order: the i-th record of a
//! model on a task counts as iteration i.

use std::path::Path;
use std::vec;

use domain::DialogueKey;
use serde::de::DeserializeOwned;

use super::cipher::LogCipher;
use super::error::LogError;
use super::places::PlaceReader;
use super::winner::WinnerIndex;

/// Records held at once. The log is in the order of commits, so records are read in groups, each in the order of the
/// log, so that each frame is decoded once per group. A group of whole records takes about 15 MB at the published mean
/// length of a dialogue; larger groups are not faster.
const GROUP_RECORDS: usize = 1024;

/// Streams winning records, or the part of them that `R` is, with their tickets in a chosen order. Memory does not grow with
/// the run.
pub struct Ordered<'a, K, R> {
    index: &'a WinnerIndex,
    places: PlaceReader,
    keys: K,
    group: vec::IntoIter<(u64, R)>,
}

impl<'a, K: Iterator<Item = DialogueKey>, R: DeserializeOwned> Ordered<'a, K, R> {
    /// `index` must be built from this log. Keys without a record are skipped.
    pub fn new(index: &'a WinnerIndex, log: &Path, cipher: Option<&LogCipher>, keys: K) -> Self {
        Self { index, places: PlaceReader::new(log, cipher), keys, group: Vec::new().into_iter() }
    }

    /// Reads the next group; empty at the end.
    fn read_group(&mut self) -> Result<Vec<(u64, R)>, LogError> {
        let recorded = self.keys.by_ref().filter_map(|key| self.index.get(&key));
        let mut wanted: Vec<_> = recorded.take(GROUP_RECORDS).map(|rank| rank.location()).zip(0..).collect();
        wanted.sort_unstable();
        let mut group: Vec<Option<(u64, R)>> = Vec::new();
        group.resize_with(wanted.len(), || None);
        for (location, place) in wanted {
            let read = self.places.read(location)?;
            group[place] = read.map(|parsed| (parsed.ticket, parsed.record));
        }
        Ok(group.into_iter().flatten().collect())
    }
}

impl<K: Iterator<Item = DialogueKey>, R: DeserializeOwned> Iterator for Ordered<'_, K, R> {
    type Item = Result<(u64, R), LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(record) = self.group.next() {
            return Some(Ok(record));
        }
        match self.read_group() {
            Ok(group) => self.group = group.into_iter(),
            Err(error) => return Some(Err(error)),
        }
        self.group.next().map(Ok)
    }
}

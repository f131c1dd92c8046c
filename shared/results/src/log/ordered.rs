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

/// Whole records held at once. The log is in the order of commits, so records are read in groups, each in the order of the
/// log, so that each frame is decoded once per group: a frame of a run of many models has records of many groups. As text, a
/// group takes about 30 MB at the published mean length of a dialogue.
pub const RECORDS_AT_ONCE: usize = 4096;

/// Parts of records held at once, without the texts: a few kB each.
pub const PARTS_AT_ONCE: usize = 8192;

/// Streams winning records, or the part of them that `R` is, in a chosen order. Memory does not grow with
/// the run.
pub struct Ordered<'a, K, R> {
    index: &'a WinnerIndex,
    places: PlaceReader,
    keys: K,
    at_once: usize,
    group: vec::IntoIter<R>,
}

impl<'a, K: Iterator<Item = DialogueKey>, R: DeserializeOwned> Ordered<'a, K, R> {
    /// `index` must be built from this log. Keys without a record are skipped. `at_once` records are held, for example
    /// [`RECORDS_AT_ONCE`].
    pub fn new(
        index: &'a WinnerIndex,
        log: &Path,
        cipher: Option<&LogCipher>,
        keys: K,
        at_once: usize,
    ) -> Self {
        // Within a group no frame is needed again, and between groups there are more frames than could be kept.
        let places = PlaceReader::in_order(log, cipher);
        Self { index, places, keys, at_once, group: Vec::new().into_iter() }
    }

    /// Reads the next group; empty at the end.
    fn read_group(&mut self) -> Result<Vec<R>, LogError> {
        let recorded = self.keys.by_ref().filter_map(|key| self.index.get(&key));
        let mut wanted: Vec<_> = recorded.take(self.at_once).map(|rank| rank.location()).zip(0..).collect();
        wanted.sort_unstable();
        let mut group: Vec<Option<R>> = Vec::new();
        group.resize_with(wanted.len(), || None);
        for (location, place) in wanted {
            group[place] = self.places.read(location)?.map(|(record, _)| record);
        }
        Ok(group.into_iter().flatten().collect())
    }
}

impl<K: Iterator<Item = DialogueKey>, R: DeserializeOwned> Iterator for Ordered<'_, K, R> {
    type Item = Result<R, LogError>;

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

#[cfg(test)]
mod tests {
    use domain::Record;
    use proptest::prelude::*;

    use super::*;
    use crate::log::{LogOptions, LogWriter};
    use crate::testing;

    proptest! {
        #[test]
        fn records_come_in_the_order_of_the_keys_whatever_is_held_at_once(
            groups in prop::collection::vec(1..4_u32, 1..5),
            asked in prop::collection::vec(0..12_u32, 0..12),
            at_once in 1..5_usize,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let options = LogOptions { segment_bytes: 1500, ..LogOptions::default() };
            let mut writer = LogWriter::open(folder.path(), options).unwrap();
            let mut written = 0;
            for group in groups {
                for _ in 0..group {
                    writer.append(&testing::record("m", written, true)).unwrap();
                    written += 1;
                }
                writer.commit().unwrap();
            }
            let index = WinnerIndex::build(folder.path(), None, 12, |_| {}).unwrap();
            let keys = asked.iter().map(|&iteration| testing::key("m", iteration));
            let read = Ordered::<_, Record>::new(&index, folder.path(), None, keys, at_once);
            let read: Vec<u64> = read.map(|read| testing::number(&read.unwrap())).collect();
            let recorded = asked.into_iter().filter(|&iteration| iteration < written).map(u64::from);
            prop_assert_eq!(read, recorded.collect::<Vec<_>>());
        }
    }
}

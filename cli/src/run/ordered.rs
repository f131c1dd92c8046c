//! A run's winning records in the order of its plan, which is the order that result files are read in: the i-th record of
//! a model on a task counts as iteration i.

use std::collections::HashMap;
use std::path::Path;
use std::vec;

use domain::DialogueKey;
use results::log::{LogCipher, LogEntry, LogError, WinnerIndex};

/// Records held at once. The log is in the order of commits, so each such group costs one pass over it; about 60 MB at the
/// published mean length of a dialogue.
const GROUP_RECORDS: usize = 10_000;

/// Streams winning records in the order of `keys`; keys without a record are passed over.
pub(super) struct Ordered<'a, K> {
    index: &'a WinnerIndex,
    log: &'a Path,
    cipher: Option<&'a LogCipher>,
    keys: K,
    group: vec::IntoIter<LogEntry>,
}

impl<'a, K: Iterator<Item = DialogueKey>> Ordered<'a, K> {
    pub(super) fn new(index: &'a WinnerIndex, log: &'a Path, cipher: Option<&'a LogCipher>, keys: K) -> Self {
        Self { index, log, cipher, keys, group: Vec::new().into_iter() }
    }

    /// Reads the next group; empty at the end.
    fn read_group(&mut self) -> Result<Vec<LogEntry>, LogError> {
        let recorded = self.keys.by_ref().filter(|key| self.index.get(key).is_some());
        let places: HashMap<DialogueKey, usize> = recorded.take(GROUP_RECORDS).zip(0..).collect();
        let mut group: Vec<Option<LogEntry>> = vec![None; places.len()];
        if !places.is_empty() {
            for entry in self.index.records(self.log, self.cipher)? {
                let entry = entry?;
                if let Some(place) = places.get(&entry.record.key) {
                    group[*place] = Some(entry);
                }
            }
        }
        Ok(group.into_iter().flatten().collect())
    }
}

impl<K: Iterator<Item = DialogueKey>> Iterator for Ordered<'_, K> {
    type Item = Result<LogEntry, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.group.next() {
            return Some(Ok(entry));
        }
        match self.read_group() {
            Ok(group) => self.group = group.into_iter(),
            Err(error) => return Some(Err(error)),
        }
        self.group.next().map(Ok)
    }
}

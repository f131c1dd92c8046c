//! Which record of a dialogue counts.
//!
//! Delivery is at least once, so a dialogue may have several records. The first scored one of the log counts, else the first
//! failed one. So a scored record supersedes a failed one, never the other way round, and a later scored record changes nothing.
//! As this is a function of the log alone, all readers agree.

use std::collections::HashMap;
use std::path::Path;

use domain::{DialogueKey, Iteration, Record};

use super::cipher::LogCipher;
use super::damage::Damage;
use super::error::LogError;
use super::lines::EntryLocation;
use super::places::PlaceReader;
use super::reader::{LogItem, LogReader};
use crate::Summary;
use crate::names::Names;

/// Ranks the records of one dialogue: the smallest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WinnerRank {
    failed: bool,
    location: EntryLocation,
}

impl WinnerRank {
    /// The rank of a record by whether it has scores, and its position.
    pub fn new(scored: bool, location: EntryLocation) -> Self {
        Self { failed: !scored, location }
    }

    /// Whether the record has scores.
    pub fn is_scored(&self) -> bool {
        !self.failed
    }

    /// The record's position.
    pub fn location(&self) -> EntryLocation {
        self.location
    }
}

/// The winner of every key, by position in the log: about 70 bytes per dialogue, without texts.
#[derive(Debug, Default)]
pub struct WinnerIndex {
    labels: Labels,
    winners: HashMap<(u32, u32, Iteration), WinnerRank>,
    records: u64,
}

impl WinnerIndex {
    /// Empty, with room for this many keys: an index that grows by doubling temporarily needs three times its memory.
    fn with_capacity(keys: usize) -> Self {
        Self { winners: HashMap::with_capacity(keys), ..Self::default() }
    }

    /// Reads a whole log, with room for this many keys. Damage is passed to `damaged`.
    pub fn build(
        folder: &Path,
        cipher: Option<&LogCipher>,
        keys: usize,
        mut damaged: impl FnMut(Damage),
    ) -> Result<Self, LogError> {
        let mut index = Self::with_capacity(keys);
        for item in LogReader::<Summary>::of(folder, cipher)? {
            match item? {
                LogItem::Record { location, record } => {
                    index.add(&record.key, WinnerRank::new(record.outcome.is_scored(), location));
                }
                LogItem::Event { .. } => {}
                LogItem::Damage(damage) => damaged(damage),
            }
        }
        Ok(index)
    }

    /// Adds a record, in any order.
    pub fn add(&mut self, key: &DialogueKey, rank: WinnerRank) {
        self.records += 1;
        let key = self.labels.intern(key);
        self.winners.entry(key).and_modify(|winner| *winner = rank.min(*winner)).or_insert(rank);
    }

    /// The winner of a key.
    pub fn get(&self, key: &DialogueKey) -> Option<WinnerRank> {
        self.winners.get(&self.labels.find(key)?).copied()
    }

    /// Keys with a record.
    pub fn len(&self) -> usize {
        self.winners.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.winners.is_empty()
    }

    /// Keys whose winner has scores.
    pub fn scored(&self) -> usize {
        self.winners.values().filter(|rank| rank.is_scored()).count()
    }

    /// Records that did not win.
    pub fn superseded(&self) -> u64 {
        self.records - self.winners.len() as u64
    }

    /// The keys with their winners, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (DialogueKey, WinnerRank)> + '_ {
        self.winners.iter().map(|(&key, &rank)| (self.labels.key(key), rank))
    }

    /// Streams the winning records of the log that this index was built from, in log order. Records appended since
    /// are left out; damage is skipped, because [`build`](Self::build) reported it.
    pub fn records(&self, folder: &Path, cipher: Option<&LogCipher>) -> Result<WinningRecords<'_>, LogError> {
        Ok(WinningRecords { index: self, reader: LogReader::open(folder, cipher)? })
    }

    /// Reads the winner of one key.
    pub fn read(
        &self,
        folder: &Path,
        cipher: Option<&LogCipher>,
        key: &DialogueKey,
    ) -> Result<Option<Record>, LogError> {
        let Some(rank) = self.get(key) else { return Ok(None) };
        let mut places = PlaceReader::new(folder, cipher);
        Ok(places.read::<Record>(rank.location)?.map(|(record, _)| record))
    }
}

/// The winning records of a log, see [`WinnerIndex::records`].
pub struct WinningRecords<'a> {
    index: &'a WinnerIndex,
    reader: LogReader,
}

impl Iterator for WinningRecords<'_> {
    type Item = Result<Record, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.reader.next()? {
                Err(error) => return Some(Err(error)),
                Ok(LogItem::Event { .. } | LogItem::Damage(_)) => {}
                Ok(LogItem::Record { location, record }) => {
                    if self.index.get(&record.key).is_some_and(|rank| rank.location == location) {
                        return Some(Ok(*record));
                    }
                }
            }
        }
    }
}

/// Model and task labels by number, because a million keys share a few dozen of them.
#[derive(Debug, Default)]
struct Labels(Names);

impl Labels {
    fn intern(&mut self, key: &DialogueKey) -> (u32, u32, Iteration) {
        (self.0.number(key.model.as_str()), self.0.number(key.task.as_str()), key.iteration)
    }

    fn find(&self, key: &DialogueKey) -> Option<(u32, u32, Iteration)> {
        Some((self.0.find(key.model.as_str())?, self.0.find(key.task.as_str())?, key.iteration))
    }

    fn key(&self, (model, task, iteration): (u32, u32, Iteration)) -> DialogueKey {
        let label = |number| self.0.text(number).unwrap_or_default();
        DialogueKey { model: label(model).into(), task: label(task).into(), iteration }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::log::SegmentId;
    use crate::testing;

    proptest! {
        #[test]
        fn the_first_scored_record_counts_else_the_first_one_in_whatever_order_they_are_read(
            records in prop::collection::vec((0..3_u32, any::<bool>()), 0..30),
            rotation in 0..30_usize,
        ) {
            let place = |line| EntryLocation { segment: SegmentId::first(1), offset: 0, line };
            let ranks: Vec<(DialogueKey, WinnerRank)> = (0..)
                .zip(&records)
                .map(|(line, &(iteration, scored))| (testing::key("m", iteration), WinnerRank::new(scored, place(line))))
                .collect();
            let mut index = WinnerIndex::default();
            let turn = rotation % ranks.len().max(1);
            for (key, rank) in ranks[turn..].iter().chain(&ranks[..turn]).rev() {
                index.add(key, *rank);
            }
            for iteration in 0..3 {
                // The rule in words, independent of the order of ranks.
                let first = |scored: bool| records.iter().position(|record| *record == (iteration, scored));
                let expected = first(true).or(first(false)).map(|line| place(line as u32));
                prop_assert_eq!(index.get(&testing::key("m", iteration)).map(|rank| rank.location()), expected);
            }
            prop_assert_eq!(index.superseded() + index.len() as u64, records.len() as u64);
            prop_assert_eq!(index.iter().filter(|(key, rank)| index.get(key) == Some(*rank)).count(), index.len());
        }
    }
}

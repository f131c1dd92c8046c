//! Decides which record of a key counts, by [`Standing`]. Entries with equal tickets (one entry delivered twice) are
//! ordered by position in the log. As this is a function of the log alone, all readers agree.

use std::collections::HashMap;
use std::path::Path;

use domain::{DialogueKey, Iteration, Record, Standing};

use super::cipher::LogCipher;
use super::damage::Damage;
use super::envelope::{LogEntry, Parsed};
use super::error::LogError;
use super::lines::EntryLocation;
use super::places::PlaceReader;
use super::reader::{LogItem, LogReader};
use crate::Summary;
use crate::names::Names;

/// The rank of a record of a key: the smallest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WinnerRank {
    standing: Standing,
    location: EntryLocation,
}

impl WinnerRank {
    /// The rank of a record.
    pub fn new(standing: Standing, location: EntryLocation) -> Self {
        Self { standing, location }
    }

    /// Whether the record has scores.
    pub fn is_scored(&self) -> bool {
        self.standing.is_scored()
    }

    pub fn ticket(&self) -> u64 {
        self.standing.ticket()
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
    entries: u64,
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
                LogItem::Entry { location, late, entry } => {
                    let LogEntry { ticket, record } = *entry;
                    let standing = Standing::new(record.outcome.is_scored(), ticket).late(late);
                    index.add(&record.key, standing, location);
                }
                LogItem::Damage(damage) => damaged(damage),
            }
        }
        Ok(index)
    }

    /// Adds an entry, in any order.
    pub fn add(&mut self, key: &DialogueKey, standing: Standing, location: EntryLocation) {
        self.entries += 1;
        let rank = WinnerRank::new(standing, location);
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

    /// Entries that did not win.
    pub fn superseded(&self) -> u64 {
        self.entries - self.winners.len() as u64
    }

    /// The keys with their winners, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (DialogueKey, WinnerRank)> + '_ {
        self.winners.iter().map(|(&key, &rank)| (self.labels.key(key), rank))
    }

    /// Streams the winning entries of the log that this index was built from, in log order. Entries appended since
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
    ) -> Result<Option<LogEntry>, LogError> {
        let Some(rank) = self.get(key) else { return Ok(None) };
        let mut places = PlaceReader::new(folder, cipher);
        let found = places.read::<Record>(rank.location)?;
        Ok(found.map(|Parsed { ticket, record, .. }| LogEntry { ticket, record }))
    }
}

/// The winning entries of a log, see [`WinnerIndex::records`].
pub struct WinningRecords<'a> {
    index: &'a WinnerIndex,
    reader: LogReader,
}

impl Iterator for WinningRecords<'_> {
    type Item = Result<LogEntry, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.reader.next()? {
                Err(error) => return Some(Err(error)),
                Ok(LogItem::Damage(_)) => {}
                Ok(LogItem::Entry { location, entry, .. }) => {
                    if self.index.get(&entry.record.key).is_some_and(|rank| rank.location == location) {
                        return Some(Ok(*entry));
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
    use crate::log::{SegmentId, WriterId};
    use crate::testing;

    fn place(line: u32) -> EntryLocation {
        EntryLocation { segment: SegmentId::first(WriterId::LOCK_HOLDER), offset: 0, line }
    }

    proptest! {
        #[test]
        fn the_winner_does_not_depend_on_the_order_of_reading(
            entries in prop::collection::vec((0..6_u64, 0..3_u32, any::<bool>()), 0..30),
            rotation in 0..30_usize,
        ) {
            let entries: Vec<(LogEntry, EntryLocation)> = entries
                .iter()
                .enumerate()
                .map(|(at, &(ticket, iteration, scored))| (testing::entry(ticket, "m", iteration, scored), place(at as u32)))
                .collect();
            let mut index = WinnerIndex::default();
            let turn = rotation % entries.len().max(1);
            for (entry, location) in entries[turn..].iter().chain(&entries[..turn]).rev() {
                let standing = Standing::new(entry.record.outcome.is_scored(), entry.ticket);
                index.add(&entry.record.key, standing, *location);
            }
            for iteration in 0..3 {
                let key = testing::key("m", iteration);
                let of_key = || entries.iter().filter(|(entry, _)| entry.record.key == key);
                // The rule in words, independent of `WinnerRank`.
                let scored = of_key().filter(|(entry, _)| entry.record.outcome.is_scored()).min_by_key(|(entry, at)| (entry.ticket, *at));
                let failed = of_key().min_by_key(|(entry, at)| (entry.ticket, *at));
                let expected = scored.or(failed).map(|(_, location)| *location);
                prop_assert_eq!(index.get(&key).map(|rank| rank.location()), expected);
            }
            prop_assert_eq!(index.superseded() + index.len() as u64, entries.len() as u64);
            prop_assert_eq!(index.iter().filter(|(key, rank)| index.get(key) == Some(*rank)).count(), index.len());
        }
    }
}

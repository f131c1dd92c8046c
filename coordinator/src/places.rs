//! Where the records that count lie in a run's log.

use std::path::Path;

use domain::Standing;
use results::log::{LogTail, Parsed, RecordHead, Seals, TailPart, WinnerRank};

use crate::errors::{Result, internal};
use crate::run::Run;

/// Readings from the start, because a seal changed which records count. More in a row would need somebody who closes and
/// reopens a run while its log is read.
const READINGS_MAX: usize = 3;

/// The position of the record that counts, for every dialogue: 60 bytes each. It follows the log from one call to the next.
pub(crate) struct RecordPositions {
    tail: LogTail,
    seals: Seals,
    ranks: Vec<Option<WinnerRank>>,
    /// Whether an entry was read under these seals.
    begun: bool,
}

impl RecordPositions {
    /// Nothing read yet.
    pub(crate) fn new(run: &Run, folder: &Path) -> Self {
        Self {
            tail: LogTail::new(folder, run.cipher.as_ref(), None),
            seals: Seals::default(),
            ranks: vec![None; run.layout.slots()],
            begun: false,
        }
    }

    /// Reads what the log holds now. Blocks.
    pub(crate) fn catch_up(&mut self, run: &Run, folder: &Path) -> Result<&[Option<WinnerRank>]> {
        for _ in 0..READINGS_MAX {
            if self.follow(run)? {
                return Ok(&self.ranks);
            }
            *self = Self::new(run, folder);
        }
        Err(internal(format!("run {} is closed and reopened all the time", run.id())))
    }

    /// Whether everything read before still counts as it did.
    fn follow(&mut self, run: &Run) -> Result<bool> {
        while let Some(part) = self.tail.poll().map_err(internal)? {
            let mut lines = match part {
                TailPart::Lines(lines) => lines,
                TailPart::Sealed(_) if self.begun => return Ok(false),
                TailPart::Sealed(read) => {
                    self.seals = read;
                    continue;
                }
                // Damage was reported when the run was loaded.
                TailPart::Damage(_) => continue,
            };
            self.begun = true;
            let end = lines.end();
            while let Some(line) = lines.next() {
                let Ok(Parsed { ticket, record, .. }) = line.parse::<RecordHead>() else { continue };
                let Some(slot) = run.layout.slot_of(&record.key) else { continue };
                let late = self.seals.is_late(end, ticket);
                let standing = Standing::new(record.outcome.is_scored(), ticket).late(late);
                let rank = WinnerRank::new(standing, line.location());
                if self.ranks[slot].is_none_or(|counted| rank < counted) {
                    self.ranks[slot] = Some(rank);
                }
            }
        }
        Ok(true)
    }
}

//! Where the records that count lie in a run's log.

use std::path::Path;

use domain::{Record, RunId, Standing};
use results::Summary;
use results::log::{LogCipher, LogTail, Parsed, PlaceReader, Seals, TailPart, WinnerRank};

use crate::errors::{Result, internal};
use crate::plan::numbering::Numbering;

/// Readings from the start, because a seal changed which records count. More in a row would need somebody who closes and
/// reopens a run while its log is read.
const READINGS_MAX: usize = 3;

/// A run's record log, and what is needed to read it.
#[derive(Clone, Copy)]
pub(crate) struct LogSource<'a> {
    pub run: &'a RunId,
    pub folder: &'a Path,
    pub cipher: Option<&'a LogCipher>,
    pub numbering: &'a Numbering,
}

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
    pub(crate) fn new(log: LogSource<'_>) -> Self {
        Self {
            tail: LogTail::new(log.folder, log.cipher, None),
            seals: Seals::default(),
            ranks: vec![None; log.numbering.slots()],
            begun: false,
        }
    }

    /// Reads what the log holds now. Blocks.
    pub(crate) fn catch_up(&mut self, log: LogSource<'_>) -> Result<&[Option<WinnerRank>]> {
        for _ in 0..READINGS_MAX {
            if self.follow(log.numbering)? {
                return Ok(&self.ranks);
            }
            *self = Self::new(log);
        }
        Err(internal(format!("run {} is closed and reopened all the time", log.run)))
    }

    /// Whether everything read before still counts as it did.
    fn follow(&mut self, numbering: &Numbering) -> Result<bool> {
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
                let Ok(Parsed { ticket, record, .. }) = line.parse::<Summary>() else { continue };
                let Some(slot) = numbering.slot_of(&record.key) else { continue };
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

/// The records that count, with their tickets. Blocks.
pub(crate) fn winners_of(log: LogSource<'_>) -> Result<Vec<(u64, Record)>> {
    let mut reader = PlaceReader::new(log.folder, log.cipher);
    let mut winners = Vec::new();
    for rank in RecordPositions::new(log).catch_up(log)?.iter().flatten() {
        let parsed = reader.read::<Record>(rank.location()).map_err(internal)?;
        let parsed = parsed.ok_or_else(|| internal(format!("a record of run {} has moved", log.run)))?;
        winners.push((rank.ticket(), parsed.record));
    }
    Ok(winners)
}

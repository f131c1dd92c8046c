//! Checks a whole log: what `kgfleet verify RUN` reports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use domain::FailureCause;
use serde::Serialize;

use super::cipher::LogCipher;
use super::damage::{Damage, DamageKind};
use super::error::LogError;
use super::lines::Location;
use super::reader::{LogItem, LogReader};
use super::segment_id::SegmentId;
use super::winner::WinnerIndex;

/// Most damages that are listed one by one; more are only counted.
pub const MAX_LISTED_DAMAGES: usize = 100;

/// What a log holds, counted in one pass over all of it.
#[derive(Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Segment files.
    pub segments: usize,
    /// Writers that they are of.
    pub writers: usize,
    /// Their length in bytes.
    pub bytes: u64,
    /// Entries read.
    pub entries: u64,
    /// Dialogues with a record: winners.
    pub dialogues: u64,
    /// Winners with scores.
    pub scored: u64,
    /// Winners without, by cause.
    pub failed: BTreeMap<String, u64>,
    /// Entries that another record of the same dialogue supersedes.
    pub superseded: u64,
    /// Entries in encrypted frames that are intact, and not counted otherwise because no key was given.
    pub unopened: u64,
    /// Dialogues the manifest plans, where one was given.
    pub planned: Option<u64>,
    /// Damaged places, as text, the first [`MAX_LISTED_DAMAGES`].
    pub damages: Vec<String>,
    /// Damaged places where acknowledged records may be lost.
    pub losses: u64,
    /// Bytes behind the last intact frame of a writer that died. No record was lost.
    pub torn_bytes: u64,
}

impl VerifyReport {
    /// Whether every acknowledged record is there.
    pub fn is_sound(&self) -> bool {
        self.losses == 0
    }

    /// Planned dialogues without any record, where the plan is known and every entry could be read.
    pub fn missing(&self) -> Option<u64> {
        self.planned.filter(|_| self.unopened == 0).map(|planned| planned.saturating_sub(self.dialogues))
    }

    fn note(&mut self, damage: &Damage) {
        match damage.kind {
            DamageKind::TornTail { bytes } => self.torn_bytes += bytes,
            _ => self.losses += 1,
        }
        if self.damages.len() < MAX_LISTED_DAMAGES {
            self.damages.push(damage.to_string());
        }
    }
}

/// Reads and checks the log in `folder`. Damage is no error but part of the report. Without the cipher of an encrypted log
/// its checksums are checked and its entries counted, and nothing is told of its dialogues.
pub fn verify(
    folder: &Path,
    cipher: Option<&LogCipher>,
    planned: Option<u64>,
) -> Result<VerifyReport, LogError> {
    let mut report = VerifyReport { planned, ..VerifyReport::default() };
    let mut writers = BTreeSet::new();
    for segment in SegmentId::list(folder)? {
        let path = segment.path(folder);
        report.segments += 1;
        writers.insert(segment.writer);
        report.bytes += std::fs::metadata(&path).map_err(|error| LogError::io(&path, "read", error))?.len();
    }
    report.writers = writers.len();
    let mut index = WinnerIndex::default();
    // A winner's cause is known only when all entries are; a failed record that was superseded leaves again.
    let mut causes: BTreeMap<Location, FailureCause> = BTreeMap::new();
    let mut reader = LogReader::open(folder, cipher)?.passing_encrypted();
    for item in reader.by_ref() {
        match item? {
            LogItem::Damage(damage) => report.note(&damage),
            LogItem::Entry { location, late, entry } => {
                report.entries += 1;
                index.add(late, &entry, location);
                if let Some(cause) = entry.record.outcome.failure() {
                    causes.insert(location, cause);
                }
            }
        }
    }
    report.unopened = reader.passed_lines();
    report.dialogues = index.len() as u64;
    report.scored = index.scored() as u64;
    report.superseded = index.superseded();
    for (_, rank) in index.iter() {
        if let Some(cause) = causes.get(&rank.location()) {
            *report.failed.entry(cause.to_string()).or_default() += 1;
        }
    }
    Ok(report)
}

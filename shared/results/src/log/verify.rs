//! Checks a whole log: what `kgfleet verify RUN` reports. It reads everything and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use domain::FailureCause;
use serde::Serialize;

use super::cipher::LogCipher;
use super::damage::{Damage, DamageKind};
use super::error::LogError;
use super::lines::EntryLocation;
use super::reader::{LogItem, LogReader};
use super::segment_id::SegmentId;
use super::winner::{WinnerIndex, WinnerRank};
use crate::files::Doing;

/// Maximum number of damages listed; more are only counted.
pub const LISTED_DAMAGES_MAX: usize = 100;

/// The content of a log, counted in one pass.
#[derive(Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Segment files.
    pub segments: usize,
    /// Number of epochs with segments.
    pub epochs: usize,
    /// Their length in bytes.
    pub bytes: u64,
    /// Records read.
    pub records: u64,
    /// Winners: dialogues with a record.
    pub dialogues: u64,
    /// Winners with scores.
    pub scored: u64,
    /// Winners without, by cause.
    pub failed: BTreeMap<String, u64>,
    /// Records that are not winners.
    pub superseded: u64,
    /// Lines in intact encrypted frames, not counted otherwise because no key was given.
    pub unopened: u64,
    /// Planned dialogues, if a manifest was given.
    pub planned: Option<u64>,
    /// Damaged places, as text, the first [`LISTED_DAMAGES_MAX`].
    pub damages: Vec<String>,
    /// Damaged places where acknowledged records may be lost.
    pub losses: u64,
    /// Bytes behind what counts of a segment. No record was lost.
    pub torn_bytes: u64,
    /// The winners.
    #[serde(skip)]
    pub winners: WinnerIndex,
}

impl VerifyReport {
    /// Whether every acknowledged record exists.
    pub fn is_sound(&self) -> bool {
        self.losses == 0
    }

    /// Planned dialogues without a record, if the plan is known and every line could be read.
    pub fn missing(&self) -> Option<u64> {
        self.planned.filter(|_| self.unopened == 0).map(|planned| planned.saturating_sub(self.dialogues))
    }

    fn note(&mut self, damage: &Damage) {
        match damage.kind {
            DamageKind::TornTail { bytes } => self.torn_bytes += bytes,
            _ => self.losses += 1,
        }
        if self.damages.len() < LISTED_DAMAGES_MAX {
            self.damages.push(damage.to_string());
        }
    }
}

/// Reads and checks the log in `folder`. Damage is not an error but part of the report. Without the cipher of an
/// encrypted log, its checksums are checked and its lines counted, and nothing is known about its dialogues.
pub fn verify(
    folder: &Path,
    cipher: Option<&LogCipher>,
    planned: Option<u64>,
) -> Result<VerifyReport, LogError> {
    let mut report = VerifyReport { planned, ..VerifyReport::default() };
    let mut epochs = BTreeSet::new();
    for segment in SegmentId::list(folder)? {
        let path = segment.path(folder);
        report.segments += 1;
        epochs.insert(segment.epoch);
        report.bytes += fs::metadata(&path).doing("read", &path)?.len();
    }
    report.epochs = epochs.len();
    let mut index = WinnerIndex::default();
    // A winner is known only after all records; a failed record may be superseded.
    let mut causes: BTreeMap<EntryLocation, FailureCause> = BTreeMap::new();
    let mut reader = LogReader::open(folder, cipher)?.passing_encrypted();
    for item in reader.by_ref() {
        match item? {
            LogItem::Damage(damage) => report.note(&damage),
            LogItem::Event { .. } => {}
            LogItem::Record { location, record } => {
                report.records += 1;
                index.add(&record.key, WinnerRank::new(record.outcome.is_scored(), location));
                if let Some(cause) = record.outcome.failure() {
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
    report.winners = index;
    Ok(report)
}

//! Epochs of a log: who writes it, and how much of what earlier writers left counts.
//!
//! Whoever writes a log first *claims* its next epoch: the file `00000003.claim` beside the segments, created exclusively, with
//! a random id. Then it fixes the *ends* of all earlier epochs in `00000003.ends`: which segments count, each up to where. What
//! an earlier writer appends later, because it was stopped meanwhile, is behind these ends and counts for nobody. The writer of an
//! epoch checks its claim after every sync, before it acknowledges anything: so what was acknowledged is before the ends of every
//! later epoch.
//!
//! The ends of an epoch are a line of JSON and a second one with the CRC-32 of the first in hexadecimal. They repeat those before
//! and add what was written since, so that the newest ones are enough; the ones before stay, for the case that the newest are
//! damaged.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use domain::machine;
use serde::{Deserialize, Serialize};

use super::damage::{Damage, DamageKind};
use super::error::LogError;
use super::segment::{Extent, Part, Segment};
use super::segment_id::SegmentId;
use super::synced::{SegmentEnd, Synced};
use crate::files::{self, Doing, if_there};

/// File name extension of claims.
const CLAIM: &str = "claim";

/// File name extension of ends.
const ENDS: &str = "ends";

/// The major version that is written, and the newest that is read.
const VERSION: u32 = 1;

/// Epochs that are tried before a claim is given up: each one missed is a writer that came first.
const CLAIMS_MAX: usize = 64;

/// The right to write a log, until somebody claims a later epoch.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    epoch: u32,
    id: String,
}

/// Which segments of epochs before `epoch` count, and up to where. What is not named does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    epoch: u32,
    segments: BTreeMap<SegmentId, SegmentEnd>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    v: u32,
    segments: BTreeMap<SegmentId, SegmentEnd>,
}

/// The newest epoch that somebody has claimed of the log in `folder`; 0 before the first.
pub fn newest(folder: &Path) -> Result<u32, LogError> {
    Ok(numbers(folder, CLAIM)?.last().copied().unwrap_or_default())
}

impl Claim {
    /// Claims the next epoch of the log in `folder`, which must exist.
    pub fn take(folder: &Path) -> Result<Self, LogError> {
        let id = format!("{:016x}", machine::random(|| OsRng.next_u64()));
        let ends = numbers(folder, ENDS)?.last().copied().unwrap_or_default();
        let written = SegmentId::list(folder)?.last().map_or(0, |segment| segment.epoch);
        let mut epoch = newest(folder)?.max(ends).max(written);
        for _ in 0..CLAIMS_MAX {
            epoch += 1;
            let path = file(folder, epoch, CLAIM);
            if files::create_shared(&path, format!("{id}\n").as_bytes()).doing("claim", &path)? {
                // A claim of this number may have been there, and removed by who claimed a later epoch.
                let highest = newest(folder)?;
                if highest > epoch {
                    if_there(fs::remove_file(&path)).doing("take back", &path)?;
                    epoch = highest;
                    continue;
                }
                let claim = Self { folder: folder.to_owned(), epoch, id };
                // They are of no use to anybody: a claim that stays by a failure here only lies about.
                for former in numbers(folder, CLAIM)?.into_iter().filter(|former| *former < epoch) {
                    let _ = fs::remove_file(file(folder, former, CLAIM));
                }
                return Ok(claim);
            }
        }
        Err(LogError::Followed { path: file(folder, epoch, CLAIM) })
    }

    /// Its number.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Sees that nobody has claimed a later epoch.
    ///
    /// # Errors
    /// [`LogError::Followed`]: somebody has, or the log is no longer there. Any other error says that it is not known: then
    /// nothing may be acknowledged either.
    pub fn check(&self) -> Result<(), LogError> {
        let path = file(&self.folder, self.epoch, CLAIM);
        let own = if_there(fs::read_to_string(&path)).doing("read", &path)?;
        let next = file(&self.folder, self.epoch + 1, CLAIM);
        // An open asks the server of a shared folder, where a listing may be remembered.
        let is_next_there = if_there(File::open(&next)).doing("look for", &next)?.is_some();
        let is_followed = is_next_there || newest(&self.folder)? > self.epoch;
        match own {
            Some(own) if own.trim_end() == self.id && !is_followed => Ok(()),
            _ => Err(LogError::Followed { path }),
        }
    }

    /// Fixes the ends of all earlier epochs. Returns the number of bytes behind them that are no whole frame: what a killed
    /// process had not finished writing.
    pub fn fix_ends(&self) -> Result<u64, LogError> {
        let (Ends { epoch: before, mut segments }, _) = Ends::read(&self.folder)?;
        let is_new = |segment: &SegmentId| (before..self.epoch).contains(&segment.epoch);
        let mut torn = 0;
        for segment in SegmentId::list(&self.folder)?.into_iter().filter(is_new) {
            let (end, rest) = measure(&self.folder, segment)?;
            torn += rest;
            if end.bytes > 0 {
                segments.insert(segment, end);
            }
        }
        // A segment that is gone is missed as long as something says how long it was.
        for segment in Synced::list(&self.folder).doing("list", &self.folder)?.into_iter().filter(is_new) {
            if let Some(synced) = Synced::read(&self.folder, segment).doing("read", &self.folder)? {
                segments.entry(segment).or_insert(synced.end);
            }
        }
        if self.epoch == 1 {
            return Ok(torn); // Nobody wrote before.
        }
        let path = file(&self.folder, self.epoch, ENDS);
        let line = serde_json::to_string(&Line { v: VERSION, segments }).map_err(std::io::Error::from);
        let line = line.doing("write", &path)?;
        let content = format!("{line}\n{:08x}\n", crc32fast::hash(line.as_bytes()));
        files::replace_shared(&path, content.as_bytes()).doing("write", &path)?;
        for former in numbers(&self.folder, ENDS)?.into_iter().filter(|former| *former < before) {
            let _ = fs::remove_file(file(&self.folder, former, ENDS));
        }
        Ok(torn)
    }
}

impl Ends {
    /// The newest ends of the log in `folder` that can be read, and those that cannot.
    pub fn read(folder: &Path) -> Result<(Self, Vec<Damage>), LogError> {
        let mut damages = Vec::new();
        for epoch in numbers(folder, ENDS)?.into_iter().rev() {
            let path = file(folder, epoch, ENDS);
            // A writer that began meanwhile has removed it.
            let Some(content) = if_there(fs::read(&path)).doing("read", &path)? else { continue };
            match decode(&content) {
                Ok(Line { segments, .. }) => return Ok((Self { epoch, segments }, damages)),
                Err(Some(found)) => return Err(LogError::Newer { path, found, supported: VERSION }),
                Err(None) => damages.push(Damage { path, offset: 0, kind: DamageKind::BadEnds }),
            }
        }
        Ok((Self::default(), damages))
    }

    /// How much of a segment counts; `None` if nothing of it does.
    pub(super) fn extent(&self, segment: SegmentId) -> Option<Extent> {
        match self.segments.get(&segment) {
            Some(end) => Some(Extent::Fixed(*end)),
            None if segment.epoch >= self.epoch => Some(Extent::Open),
            None => None,
        }
    }

    /// The segments that are named.
    pub(super) fn segments(&self) -> impl Iterator<Item = SegmentId> + '_ {
        self.segments.keys().copied()
    }
}

/// Syncs what is there of a segment. Returns its end, damage included that hides records, and the length of a torn rest.
fn measure(folder: &Path, segment: SegmentId) -> Result<(SegmentEnd, u64), LogError> {
    let path = segment.path(folder);
    match File::open(&path).and_then(|file| file.sync_data()) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((SegmentEnd::default(), 0)),
        synced => synced.doing("sync", &path)?,
    }
    let mut reader = Segment::open(folder, segment, Extent::Whole)?;
    let (mut end, mut torn) = (SegmentEnd::default(), 0);
    while let Some(part) = reader.next_part().doing("read", &path)? {
        match part {
            Part::Frame { offset, header, .. } => {
                end = SegmentEnd { bytes: offset + header.frame_bytes(), crc: header.crc() };
            }
            Part::Corrupt { offset, bytes } => end = SegmentEnd { bytes: offset + bytes, crc: 0 },
            Part::Torn { bytes, .. } => torn += bytes,
            Part::Lost { .. } => {}
        }
    }
    let synced = Synced::read(folder, segment).doing("read how far was synced", &path)?;
    let known = synced.map(|synced| synced.end).filter(|known| known.bytes >= end.bytes);
    Ok((known.unwrap_or(end), torn))
}

fn file(folder: &Path, epoch: u32, extension: &str) -> PathBuf {
    folder.join(format!("{epoch:08}.{extension}"))
}

/// The epochs with a file of this kind, in order.
fn numbers(folder: &Path, extension: &str) -> Result<Vec<u32>, LogError> {
    let number = |name: &str| -> Option<u32> {
        let epoch = name.strip_suffix(extension)?.strip_suffix('.')?.parse().ok()?;
        (format!("{epoch:08}.{extension}") == name).then_some(epoch)
    };
    let names = files::names(folder).doing("list", folder)?;
    let mut found: Vec<u32> = names.iter().filter_map(|name| number(name.to_str()?)).collect();
    found.sort_unstable();
    Ok(found)
}

/// The ends, or the unsupported version.
fn decode(content: &[u8]) -> Result<Line, Option<u32>> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let text = std::str::from_utf8(content).map_err(|_| None)?;
    let (line, crc) = text.split_once('\n').ok_or(None)?;
    if crc != format!("{:08x}\n", crc32fast::hash(line.as_bytes())) {
        return Err(None);
    }
    match serde_json::from_str::<Version>(line) {
        Ok(Version { v }) if v > VERSION => Err(Some(v)),
        _ => serde_json::from_str(line).map_err(|_| None),
    }
}

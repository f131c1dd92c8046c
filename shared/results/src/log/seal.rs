//! Seals fix the winners of a run: the files `00000001.kgseal`, `00000002.kgseal`, … of a log.
//!
//! When a run finishes, it is *closed*: a seal stores how far each segment counts. Later records are kept, but do not
//! displace the winners, so that an export of a finished run stays valid. Asking for more, with `retry` or
//! `--extend`, *reopens* the run: a seal stores the ticket from which on records count again. Seals are written once
//! and never change, so that all readers agree.
//!
//! A seal is one line of JSON, and a second line with the CRC-32 of the first in hexadecimal.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::damage::{Damage, DamageKind};
use super::error::LogError;
use super::segment_id::SegmentId;
use super::synced::{Position, SegmentEnd};
use crate::files::{Doing, if_there};

/// File name extension of seals.
const EXTENSION: &str = "kgseal";

/// The major version that is written, and the newest that is read.
const VERSION: u32 = 1;

/// The ends of segments.
pub type Ends = BTreeMap<SegmentId, SegmentEnd>;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SealEvent {
    /// It finished, with these segments.
    Closed(Ends),
    /// It was reopened: records with a higher ticket than this one count again.
    Reopened(u64),
}

/// The seals of a log, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seals {
    read: u32,
    closings: Vec<Closing>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Closing {
    ends: Ends,
    reopened: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    v: u32,
    #[serde(flatten)]
    event: SealEvent,
}

impl Seals {
    /// File name of the seal of this number, from 1.
    pub fn file_name(number: u32) -> String {
        format!("{number:08}.{EXTENSION}")
    }

    /// The number of a seal by its file name; `None` for another file.
    pub fn of_file_name(name: &str) -> Option<u32> {
        let number = name.strip_suffix(EXTENSION)?.strip_suffix('.')?.parse().ok()?;
        (number > 0 && Self::file_name(number) == name).then_some(number)
    }

    /// The content of a seal.
    ///
    /// # Errors
    /// None for any seal.
    pub fn encode(event: SealEvent) -> serde_json::Result<Vec<u8>> {
        let line = serde_json::to_string(&Line { v: VERSION, event })?;
        Ok(format!("{line}\n{:08x}\n", crc32fast::hash(line.as_bytes())).into_bytes())
    }

    /// The number of the next seal.
    pub fn next(&self) -> u32 {
        self.read + 1
    }

    /// Whether the run is closed.
    pub fn is_closed(&self) -> bool {
        self.closings.last().is_some_and(|closing| closing.reopened.is_none())
    }

    /// Whether a record, in a frame that ends here, arrived after the run was closed and does not belong to a
    /// reopening.
    pub fn is_late(&self, place: Position, ticket: u64) -> bool {
        self.closings.iter().any(|closing| {
            closing.ends.get(&place.segment).is_none_or(|sealed| place.end.bytes > sealed.bytes)
                && closing.reopened.is_none_or(|reopened| ticket <= reopened)
        })
    }

    /// Whether records before these ends are judged the same as by `known`, an earlier state of these seals.
    pub fn agree(&self, known: &Self, ends: &Ends) -> bool {
        let mut news =
            self.closings.iter().enumerate().filter(|(at, new)| known.closings.get(*at) != Some(new));
        news.all(|(_, closing)| {
            ends.iter().all(|(segment, end)| {
                closing.ends.get(segment).is_some_and(|sealed| end.bytes <= sealed.bytes)
            })
        })
    }

    /// The end of a segment when the run was last closed.
    pub(super) fn end(&self, segment: SegmentId) -> Option<SegmentEnd> {
        self.closings.iter().rev().find_map(|closing| closing.ends.get(&segment).copied())
    }

    /// The segments that existed when the run was closed.
    pub(super) fn segments(&self) -> impl Iterator<Item = SegmentId> + '_ {
        self.closings.last().into_iter().flat_map(|closing| closing.ends.keys().copied())
    }

    /// Adds an event.
    pub fn push(&mut self, event: SealEvent) {
        self.read += 1;
        match event {
            SealEvent::Closed(ends) => self.closings.push(Closing { ends, reopened: None }),
            SealEvent::Reopened(ticket) => {
                if let Some(closing) = self.closings.last_mut() {
                    closing.reopened.get_or_insert(ticket);
                }
            }
        }
    }

    /// Reads the seals of the log in `folder`. Damaged ones are reported and skipped.
    pub fn read(folder: &Path) -> Result<(Self, Vec<Damage>), LogError> {
        let (mut seals, mut damages) = (Self::default(), Vec::new());
        while let Some(damage) = seals.read_on(folder)? {
            damages.push(damage);
        }
        Ok((seals, damages))
    }

    /// Reads new seals; stops behind each damaged one.
    pub(super) fn read_on(&mut self, folder: &Path) -> Result<Option<Damage>, LogError> {
        loop {
            let path = folder.join(Self::file_name(self.next()));
            let Some(content) = if_there(fs::read(&path)).doing("read", &path)? else { return Ok(None) };
            match decode(&content) {
                Ok(Line { event, .. }) => self.push(event),
                Err(Some(found)) => return Err(LogError::Newer { path, found, supported: VERSION }),
                Err(None) => {
                    self.read += 1;
                    return Ok(Some(Damage { path, offset: 0, kind: DamageKind::BadSeal }));
                }
            }
        }
    }
}

/// The event, or the unsupported version.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::WriterId;

    fn ends(ends: &[(u32, u64)]) -> Ends {
        let end = |&(writer, bytes)| {
            (SegmentId::first(WriterId::from_number(writer)), SegmentEnd { bytes, crc: 1 })
        };
        ends.iter().map(end).collect()
    }

    #[test]
    fn what_comes_after_a_closing_is_late_until_it_is_asked_for() {
        let mut seals = Seals::default();
        let late = |seals: &Seals, writer, end, ticket| {
            let segment = SegmentId::first(WriterId::from_number(writer));
            seals.is_late(Position { segment, end: SegmentEnd { bytes: end, crc: 0 } }, ticket)
        };
        assert!(!seals.is_closed() && !late(&seals, 1, 1, 1));
        let open = seals.clone();
        seals.push(SealEvent::Closed(ends(&[(1, 100)])));
        assert!(seals.is_closed());
        // By place, not by ticket: a ticket drawn before may be written after.
        assert!(!late(&seals, 1, 100, 9) && late(&seals, 1, 101, 1) && late(&seals, 2, 1, 1));
        assert!(seals.agree(&open, &ends(&[(1, 100)])) && !seals.agree(&open, &ends(&[(1, 101)])));
        assert!(seals.agree(&seals, &ends(&[(1, 101)])));
        seals.push(SealEvent::Reopened(50));
        assert!(!seals.is_closed() && late(&seals, 2, 1, 50) && !late(&seals, 2, 1, 51));
        seals.push(SealEvent::Closed(ends(&[(1, 100), (2, 10)])));
        assert!(late(&seals, 2, 10, 50) && !late(&seals, 2, 10, 51) && late(&seals, 2, 11, 99));
        assert_eq!(seals.next(), 4);
    }

    #[test]
    fn seals_are_read_back_and_every_flipped_bit_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let events = [SealEvent::Closed(ends(&[(0, 7), (9, 8)])), SealEvent::Reopened(12)];
        let mut expected = Seals::default();
        for event in events {
            let content = Seals::encode(event.clone()).unwrap();
            fs::write(folder.path().join(Seals::file_name(expected.next())), content).unwrap();
            expected.push(event);
        }
        assert_eq!(Seals::read(folder.path()).unwrap(), (expected, vec![]));
        let path = folder.path().join(Seals::file_name(1));
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            fs::write(&path, flipped).unwrap();
            let (seals, damages) = Seals::read(folder.path()).unwrap();
            assert_eq!((seals.next(), damages.len()), (3, 1), "flipped at {at}");
        }
        let newer = "{\"v\":2}";
        let newer = format!("{newer}\n{:08x}\n", crc32fast::hash(newer.as_bytes()));
        fs::write(&path, newer).unwrap();
        assert!(matches!(Seals::read(folder.path()), Err(LogError::Newer { found: 2, .. })));
        assert_eq!(Seals::of_file_name("00000001.kgseal"), Some(1));
        assert_eq!(Seals::of_file_name("1.kgseal"), None);
    }
}

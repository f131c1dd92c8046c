//! Reads a log from its first line to its last, past any damage, in the order in which it was written.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::iter::Peekable;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::vec;

use domain::Record;
use serde::de::DeserializeOwned;

use super::cipher::{FramePlace, LogCipher};
use super::damage::{Damage, DamageKind};
use super::envelope::Parsed;
use super::epochs::Ends;
use super::error::LogError;
use super::lines::{EntryLocation, FrameLines, Line, Unreadable};
use super::segment::{Extent, Part, Segment};
use super::segment_id::SegmentId;
use super::synced::Synced;
use crate::files::{Doing, IoError, if_there};

/// An item of a reader.
#[derive(Debug)]
pub enum LogItem<R = Record> {
    Record {
        /// Its position.
        location: EntryLocation,
        /// The record, boxed because it is much larger than a damage.
        record: Box<R>,
    },
    /// What happened to the run. Its writer defines the content.
    Event {
        /// Its position.
        location: EntryLocation,
        /// The event.
        json: String,
    },
    /// A damaged place. The reader continues behind it.
    Damage(Damage),
}

/// Up to where a log was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPosition {
    segment: SegmentId,
    /// In bytes.
    offset: u64,
}

/// Streams a log as whole records, or as [summaries](crate::Summary). Memory is bounded by the largest frame.
pub struct LogReader<R = Record> {
    folder: PathBuf,
    ends: Ends,
    bad_ends: vec::IntoIter<Damage>,
    /// Existing segments, and those known to have existed.
    segments: Peekable<vec::IntoIter<SegmentId>>,
    /// The next expected segment of this epoch.
    expected: SegmentId,
    /// Where the next part is read.
    position: ReadPosition,
    current: Option<Current>,
    frame: Option<FrameLines>,
    cipher: Option<LogCipher>,
    /// Lines of encrypted frames skipped without a key; `None`: such a frame is an error.
    passed_lines: Option<u64>,
    /// After an error the reader ends.
    finished: bool,
    reads: PhantomData<R>,
}

/// The current segment.
struct Current {
    id: SegmentId,
    /// Whether it may end in a torn frame.
    may_be_torn: bool,
    segment: Segment,
}

impl LogReader {
    /// Reads whole records; as [`LogReader::of`].
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn open(folder: &Path, cipher: Option<&LogCipher>) -> Result<Self, LogError> {
        Self::of(folder, cipher)
    }
}

impl<R: DeserializeOwned> LogReader<R> {
    /// Reads the log in `folder` at its current length. Encrypted frames need their cipher; without it,
    /// [`LogError::KeyNeeded`] is the last item.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn of(folder: &Path, cipher: Option<&LogCipher>) -> Result<Self, LogError> {
        Self::from(folder, cipher, None)
    }

    /// The same from a [position](Self::position) of an earlier reading on.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn from(
        folder: &Path,
        cipher: Option<&LogCipher>,
        position: Option<ReadPosition>,
    ) -> Result<Self, LogError> {
        let (ends, bad_ends) = Ends::read(folder)?;
        let mut segments: BTreeSet<SegmentId> = SegmentId::list(folder)?.into_iter().collect();
        segments.extend(Synced::list(folder).doing("list", folder)?);
        segments.extend(ends.segments());
        let position = position.unwrap_or(ReadPosition { segment: SegmentId::first(1), offset: 0 });
        segments.retain(|segment| *segment >= position.segment);
        Ok(Self {
            folder: folder.to_owned(),
            ends,
            bad_ends: bad_ends.into_iter(),
            segments: segments.into_iter().collect::<Vec<_>>().into_iter().peekable(),
            expected: position.segment,
            position,
            current: None,
            frame: None,
            cipher: cipher.cloned(),
            passed_lines: None,
            finished: false,
            reads: PhantomData,
        })
    }

    /// Up to where it has read: behind the last item, once there is none left.
    pub fn position(&self) -> ReadPosition {
        self.position
    }

    /// Skips encrypted frames if there is no cipher: their checksums are checked, their lines counted.
    pub(super) fn passing_encrypted(mut self) -> Self {
        self.passed_lines = Some(0);
        self
    }

    /// Lines of the encrypted frames that were [skipped](Self::passing_encrypted) so far.
    pub(super) fn passed_lines(&self) -> u64 {
        self.passed_lines.unwrap_or(0)
    }

    fn next_item(&mut self) -> Result<Option<LogItem<R>>, LogError> {
        if let Some(damage) = self.bad_ends.next() {
            return Ok(Some(LogItem::Damage(damage)));
        }
        loop {
            if let Some(line) = self.frame.as_mut().and_then(FrameLines::next) {
                return item(&self.folder, &line).map(Some);
            }
            self.frame = None;
            let Some(current) = &mut self.current else {
                match self.next_segment()? {
                    Some(Some(damage)) => return Ok(Some(LogItem::Damage(damage))),
                    Some(None) => continue,
                    None => return Ok(None),
                }
            };
            let (id, may_be_torn) = (current.id, current.may_be_torn);
            let path = id.path(&self.folder);
            let part = current.segment.next_part().doing("read", &path)?;
            let damage = |offset, kind| Ok(Some(LogItem::Damage(Damage { path, offset, kind })));
            match part {
                None => self.current = None,
                Some(Part::Frame { offset, header, payload }) => {
                    self.position = ReadPosition { segment: id, offset: offset + header.frame_bytes() };
                    let place = FramePlace { segment: id, offset };
                    match FrameLines::open(place, &header, &payload, self.cipher.as_ref()) {
                        Ok(lines) => self.frame = Some(lines),
                        Err(Unreadable::Damaged(kind)) => return damage(offset, kind),
                        Err(Unreadable::KeyNeeded) => match &mut self.passed_lines {
                            Some(passed) => *passed += u64::from(header.lines),
                            None => return Err(LogError::KeyNeeded { path: id.path(&self.folder) }),
                        },
                    }
                }
                Some(Part::Lost { offset, kind }) => return damage(offset, kind),
                Some(Part::Torn { offset, bytes }) if may_be_torn => {
                    return damage(offset, DamageKind::TornTail { bytes });
                }
                Some(Part::Corrupt { offset, bytes } | Part::Torn { offset, bytes }) => {
                    self.position = ReadPosition { segment: id, offset: offset + bytes };
                    return damage(offset, DamageKind::Corrupt { bytes });
                }
            }
        }
    }

    /// Moves to the next segment, or reports that it is missing; `None` at the end.
    fn next_segment(&mut self) -> Result<Option<Option<Damage>>, LogError> {
        let Some(&id) = self.segments.peek() else { return Ok(None) };
        let path = id.path(&self.folder);
        let Some(extent) = self.ends.extent(id) else {
            self.segments.next();
            let bytes = if_there(fs::metadata(&path)).doing("read", &path)?.map_or(0, |found| found.len());
            let kind = DamageKind::TornTail { bytes };
            return Ok(Some((bytes > 0).then_some(Damage { path, offset: 0, kind })));
        };
        if id.epoch != self.expected.epoch {
            self.expected = SegmentId::first(id.epoch);
        }
        if id.number > self.expected.number {
            let kind = DamageKind::MissingSegments { count: id.number - self.expected.number };
            let path = self.expected.path(&self.folder);
            self.expected = id;
            return Ok(Some(Some(Damage { path, offset: 0, kind })));
        }
        self.segments.next();
        self.expected = id.next();
        let is_last = self.segments.peek().is_none_or(|after| after.epoch != id.epoch);
        let mut segment = match Segment::open(&self.folder, id, extent) {
            Err(LogError::Io(IoError { path, source, .. })) if source.kind() == io::ErrorKind::NotFound => {
                let kind = DamageKind::MissingSegments { count: 1 };
                return Ok(Some(Some(Damage { path, offset: 0, kind })));
            }
            segment => segment?,
        };
        if id == self.position.segment {
            segment.seek(self.position.offset);
        } else {
            self.position = ReadPosition { segment: id, offset: 0 };
        }
        let may_be_torn = is_last || matches!(extent, Extent::Fixed(_));
        self.current = Some(Current { id, may_be_torn, segment });
        Ok(Some(None))
    }
}

fn item<R: DeserializeOwned>(folder: &Path, line: &Line<'_>) -> Result<LogItem<R>, LogError> {
    let location = line.location();
    match line.parse() {
        Ok(Parsed::Record { record, .. }) => Ok(LogItem::Record { location, record: Box::new(record) }),
        Ok(Parsed::Event(json)) => Ok(LogItem::Event { location, json: json.into_owned() }),
        Err(error) => line.damage(folder, error).map(LogItem::Damage),
    }
}

impl<R: DeserializeOwned> Iterator for LogReader<R> {
    type Item = Result<LogItem<R>, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let item = self.next_item().transpose();
        self.finished = !matches!(item, Some(Ok(_)));
        item
    }
}

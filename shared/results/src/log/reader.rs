//! Reads a log from its first entry to its last, past any damage: all of one writer, then all of the next.

use std::collections::BTreeSet;
use std::io;
use std::iter::Peekable;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::vec;

use domain::Record;
use serde::de::DeserializeOwned;

use super::cipher::{FramePlace, LogCipher};
use super::damage::{Damage, DamageKind};
use super::envelope::{LogEntry, Parsed};
use super::error::LogError;
use super::lines::{EntryLocation, FrameLines, Line, Unreadable};
use super::seal::Seals;
use super::segment::{Part, Segment};
use super::segment_id::{SegmentId, WriterId};
use super::synced::{Position, Synced};
use crate::files::{Doing, IoError};

/// An item of a reader.
#[derive(Debug)]
pub enum LogItem<R = Record> {
    Entry {
        /// Its position.
        location: EntryLocation,
        /// Whether it arrived after its run had finished.
        late: bool,
        /// The entry, boxed because it is much larger than a damage.
        entry: Box<LogEntry<R>>,
    },
    /// A damaged place. The reader continues behind it.
    Damage(Damage),
}

/// Streams a log as whole records, or as [summaries](crate::Summary). Memory is bounded by the largest frame.
pub struct LogReader<R = Record> {
    folder: PathBuf,
    seals: Seals,
    bad_seals: vec::IntoIter<Damage>,
    /// Existing segments, and those known to have existed.
    segments: Peekable<vec::IntoIter<SegmentId>>,
    /// The next expected segment of this writer.
    expected: SegmentId,
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
    /// Whether it is its writer's last.
    last: bool,
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
        let (seals, bad_seals) = Seals::read(folder)?;
        let mut segments: BTreeSet<SegmentId> = SegmentId::list(folder)?.into_iter().collect();
        segments.extend(Synced::list(folder).doing("list", folder)?);
        segments.extend(seals.segments());
        Ok(Self {
            folder: folder.to_owned(),
            seals,
            bad_seals: bad_seals.into_iter(),
            segments: segments.into_iter().collect::<Vec<_>>().into_iter().peekable(),
            expected: SegmentId::first(WriterId::LOCK_HOLDER),
            current: None,
            frame: None,
            cipher: cipher.cloned(),
            passed_lines: None,
            finished: false,
            reads: PhantomData,
        })
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
        if let Some(damage) = self.bad_seals.next() {
            return Ok(Some(LogItem::Damage(damage)));
        }
        loop {
            if let Some(frame) = &mut self.frame {
                let end = frame.end();
                if let Some(line) = frame.next() {
                    return item(&self.folder, &self.seals, end, &line).map(Some);
                }
            }
            self.frame = None;
            let Some(current) = &mut self.current else {
                match self.next_segment()? {
                    Some(Some(damage)) => return Ok(Some(LogItem::Damage(damage))),
                    Some(None) => continue,
                    None => return Ok(None),
                }
            };
            let (id, last) = (current.id, current.last);
            let path = id.path(&self.folder);
            let part = current.segment.next_part().doing("read", &path)?;
            let damage = |offset, kind| Ok(Some(LogItem::Damage(Damage { path, offset, kind })));
            match part {
                None => self.current = None,
                Some(Part::Frame { offset, header, payload }) => {
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
                Some(Part::Torn { offset, bytes }) if last || current.segment.is_marked() => {
                    return damage(offset, DamageKind::TornTail { bytes });
                }
                Some(Part::Corrupt { offset, bytes } | Part::Torn { offset, bytes }) => {
                    return damage(offset, DamageKind::Corrupt { bytes });
                }
            }
        }
    }

    /// Moves to the next segment, or reports that it is missing; `None` at the end.
    fn next_segment(&mut self) -> Result<Option<Option<Damage>>, LogError> {
        let Some(&id) = self.segments.peek() else { return Ok(None) };
        if id.writer != self.expected.writer {
            self.expected = SegmentId::first(id.writer);
        }
        if id.number > self.expected.number {
            let kind = DamageKind::MissingSegments { count: id.number - self.expected.number };
            let path = self.expected.path(&self.folder);
            self.expected = id;
            return Ok(Some(Some(Damage { path, offset: 0, kind })));
        }
        self.segments.next();
        self.expected = id.next();
        let last = self.segments.peek().is_none_or(|after| after.writer != id.writer);
        let segment = match Segment::open(&self.folder, id, self.seals.end(id)) {
            Err(LogError::Io(IoError { path, source, .. })) if source.kind() == io::ErrorKind::NotFound => {
                let kind = DamageKind::MissingSegments { count: 1 };
                return Ok(Some(Some(Damage { path, offset: 0, kind })));
            }
            segment => segment?,
        };
        self.current = Some(Current { id, last, segment });
        Ok(Some(None))
    }
}

fn item<R: DeserializeOwned>(
    folder: &Path,
    seals: &Seals,
    end: Position,
    line: &Line<'_>,
) -> Result<LogItem<R>, LogError> {
    match line.parse() {
        Ok(Parsed { ticket, record, .. }) => {
            let entry = Box::new(LogEntry { ticket, record });
            Ok(LogItem::Entry { location: line.location(), late: seals.is_late(end, ticket), entry })
        }
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

//! Follows a log that others write: returns new entries, and reads nothing twice.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::cipher::{FramePlace, LogCipher};
use super::damage::{Damage, DamageKind};
use super::error::LogError;
use super::lines::{FrameLines, Unreadable};
use super::seal::Seals;
use super::segment::{Part, Segment};
use super::segment_id::{SegmentId, WriterId};
use crate::files::Doing;

/// Follows all writers of a log except one. Memory is bounded by the largest frame and the number of segments.
///
/// Of a living writer, only synced entries are returned. On file systems without locks, more may be returned, and entries may
/// appear twice if a writer took back a part of a group. Callers that merge entries by ticket are not affected.
pub struct LogTail {
    folder: PathBuf,
    cipher: Option<LogCipher>,
    except: Option<WriterId>,
    seals: Seals,
    /// Seals already returned.
    told: u32,
    cursors: BTreeMap<WriterId, Cursor>,
    /// Segments still to be checked before the folder is listed again, each with whether it is its writer's last.
    round: VecDeque<(SegmentId, bool)>,
    current: Option<OpenedSegment>,
}

/// An item of a tail.
#[derive(Debug)]
pub enum TailPart {
    /// New seals; the following entries are judged by all of these.
    Sealed(Seals),
    /// Entries.
    Lines(FrameLines),
    /// A damaged place. The tail continues behind it.
    Damage(Damage),
}

/// The read position of a writer.
struct Cursor {
    /// The next segment to read.
    segment: SegmentId,
    /// Up to where it was read, in bytes.
    offset: u64,
    /// Whether this segment was missing in the previous round although a later one existed. A listing of a folder
    /// during writes is not a snapshot, so only a segment that is missing twice counts as missing.
    missing: bool,
    /// The file when its end was found torn: it is not read again before it changes.
    torn: Option<Stamp>,
}

/// Length and time of the last change.
type Stamp = (u64, Option<SystemTime>);

struct OpenedSegment {
    id: SegmentId,
    last: bool,
    segment: Segment,
    /// Whether nothing was read since reading resumed in the middle.
    resumed: bool,
    /// State of the file before it was opened: later writes change it.
    stamp: Stamp,
}

impl LogTail {
    /// Begins at the first entry of the log in `folder`. One writer can be excluded, for a process that writes its
    /// entries itself.
    pub fn new(folder: &Path, cipher: Option<&LogCipher>, except: Option<WriterId>) -> Self {
        Self {
            folder: folder.to_owned(),
            cipher: cipher.cloned(),
            except,
            told: Seals::default().next(),
            seals: Seals::default(),
            cursors: BTreeMap::new(),
            round: VecDeque::new(),
            current: None,
        }
    }

    /// The next entries, in groups of one frame; `None` if there are no more now. Blocks on the disk.
    ///
    /// # Errors
    /// Whatever could not be read is tried again at the next call.
    pub fn poll(&mut self) -> Result<Option<TailPart>, LogError> {
        let part = self.next_part();
        if !matches!(part, Ok(Some(_))) {
            self.current = None;
            self.round.clear();
        }
        part
    }

    fn next_part(&mut self) -> Result<Option<TailPart>, LogError> {
        if self.current.is_none() && self.round.is_empty() {
            if let Some(damage) = self.seals.read_on(&self.folder)? {
                return Ok(Some(TailPart::Damage(damage)));
            }
            if self.seals.next() > self.told {
                self.told = self.seals.next();
                return Ok(Some(TailPart::Sealed(self.seals.clone())));
            }
            self.begin_round()?;
        }
        loop {
            let Some(reading) = &mut self.current else {
                let Some((id, last)) = self.round.pop_front() else { return Ok(None) };
                if let Some(damage) = self.enter(id, last)? {
                    return Ok(Some(TailPart::Damage(damage)));
                }
                continue;
            };
            let (id, last, resumed) = (reading.id, reading.last, reading.resumed);
            let path = id.path(&self.folder);
            let part = reading.segment.next_part().doing("read", &path)?;
            let Some(cursor) = self.cursors.get_mut(&id.writer) else { return Ok(None) };
            let (offset, bytes, kind) = match part {
                None => {
                    if !last {
                        *cursor = Cursor::at(id.next());
                    }
                    self.current = None;
                    continue;
                }
                Some(Part::Frame { offset, header, payload }) => {
                    let bytes = header.frame_bytes();
                    let place = FramePlace { segment: id, offset };
                    match FrameLines::open(place, &header, &payload, self.cipher.as_ref()) {
                        Ok(lines) => {
                            reading.resumed = false;
                            cursor.offset = offset + bytes;
                            return Ok(Some(TailPart::Lines(lines)));
                        }
                        Err(Unreadable::KeyNeeded) => return Err(LogError::KeyNeeded { path }),
                        Err(Unreadable::Damaged(kind)) => (offset, bytes, kind),
                    }
                }
                Some(Part::Torn { .. }) if last => {
                    cursor.torn = Some(reading.stamp);
                    self.current = None;
                    continue;
                }
                Some(Part::Torn { .. }) if reading.segment.is_marked() => continue,
                Some(Part::Lost { offset, kind }) => {
                    cursor.torn = last.then_some(reading.stamp);
                    return Ok(Some(TailPart::Damage(Damage { path, offset, kind })));
                }
                Some(Part::Corrupt { .. }) if resumed => {
                    // The writer took back entries that were read before, and continued. The new content is read.
                    reading.segment.seek(0);
                    reading.resumed = false;
                    continue;
                }
                Some(Part::Corrupt { offset, bytes } | Part::Torn { offset, bytes }) => {
                    (offset, bytes, DamageKind::Corrupt { bytes })
                }
            };
            reading.resumed = false;
            cursor.offset = offset + bytes;
            return Ok(Some(TailPart::Damage(Damage { path, offset, kind })));
        }
    }

    fn begin_round(&mut self) -> Result<(), LogError> {
        let segments = SegmentId::list(&self.folder)?;
        for (at, &id) in segments.iter().enumerate() {
            let last = segments.get(at + 1).is_none_or(|after| after.writer != id.writer);
            let done = self.cursors.get(&id.writer).is_some_and(|cursor| id < cursor.segment);
            if !done && Some(id.writer) != self.except {
                self.round.push_back((id, last));
            }
        }
        Ok(())
    }

    /// Opens a segment at its writer's read position, unless there is nothing new; or reports what is missing before
    /// it.
    fn enter(&mut self, id: SegmentId, last: bool) -> Result<Option<Damage>, LogError> {
        let cursor = self.cursors.entry(id.writer).or_insert_with(|| Cursor::at(SegmentId::first(id.writer)));
        if id.number > cursor.segment.number {
            if !cursor.missing {
                cursor.missing = true;
                self.round.retain(|(other, _)| other.writer != id.writer);
                return Ok(None);
            }
            let kind = DamageKind::MissingSegments { count: id.number - cursor.segment.number };
            let path = cursor.segment.path(&self.folder);
            *cursor = Cursor::at(id);
            self.round.push_front((id, last));
            return Ok(Some(Damage { path, offset: 0, kind }));
        }
        let path = id.path(&self.folder);
        let metadata = fs::metadata(&path).doing("read", &path)?;
        let length = metadata.len();
        let stamp = (length, metadata.modified().ok());
        if last && (length == cursor.offset || cursor.torn == Some(stamp)) {
            return Ok(None);
        }
        cursor.missing = false;
        if length < cursor.offset {
            cursor.offset = 0;
        }
        let mut segment = Segment::open(&self.folder, id, self.seals.end(id))?;
        segment.seek(cursor.offset);
        self.current = Some(OpenedSegment { id, last, segment, resumed: cursor.offset > 0, stamp });
        Ok(None)
    }
}

impl Cursor {
    fn at(segment: SegmentId) -> Self {
        Self { segment, offset: 0, missing: false, torn: None }
    }
}

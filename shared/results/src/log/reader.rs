//! Reads a log from its first entry to its last, past any damage.

use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::vec;

use super::cipher::{LogCipher, Place};
use super::envelope::{self, EnvelopeError, FORMAT_VERSION, LogEntry};
use super::error::LogError;
use super::frame::{self, FrameError};
use super::segment::{self, Part, Segment};

/// Where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// Number of the segment.
    pub segment: u32,
    /// Start of its frame in the segment, in bytes.
    pub offset: u64,
    /// Line within the frame, from 0.
    pub line: u32,
}

/// What a reader meets.
#[derive(Debug)]
pub enum LogItem {
    /// An entry.
    Entry {
        /// Where it lies.
        location: Location,
        /// The entry, boxed: it is many times the size of a damage.
        entry: Box<LogEntry>,
    },
    /// A place that cannot be read. The reader goes on behind it.
    Damage(Damage),
}

/// A damaged place of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The segment.
    pub path: PathBuf,
    /// Where the damage starts, in bytes.
    pub offset: u64,
    /// What it is.
    pub kind: DamageKind,
}

/// Kinds of damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The last segment ends in the middle of a frame: a writer died. Nothing acknowledged is lost; the next
    /// writer cuts it off.
    TornTail {
        /// Length of the torn part.
        bytes: u64,
    },
    /// Bytes that are no intact frame anywhere else: acknowledged entries may be lost.
    Corrupt {
        /// Length of the corrupt part.
        bytes: u64,
    },
    /// An intact frame that the run's key does not open: it was encrypted with another key, or moved from the place that
    /// it was written to.
    Foreign {
        /// Length of the frame.
        bytes: u64,
    },
    /// An intact frame that holds a line which is no entry.
    BadEntry {
        /// Line within the frame, from 0.
        line: u32,
        /// Why.
        message: String,
    },
    /// Segments are missing, this one and perhaps its successors.
    MissingSegments {
        /// How many.
        count: u32,
    },
}

impl Damage {
    /// Whether acknowledged entries may be lost here.
    pub fn is_loss(&self) -> bool {
        !matches!(self.kind, DamageKind::TornTail { .. })
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, offset) = (self.path.display(), self.offset);
        match &self.kind {
            DamageKind::TornTail { bytes } => {
                write!(f, "{path}: torn at byte {offset} ({bytes} bytes that were never acknowledged)")
            }
            DamageKind::Corrupt { bytes } => write!(f, "{path}: {bytes} corrupt bytes at byte {offset}"),
            DamageKind::Foreign { bytes } => {
                write!(
                    f,
                    "{path}: {bytes} bytes at byte {offset}, encrypted with another key or for another place"
                )
            }
            DamageKind::BadEntry { line, message } => {
                write!(f, "{path}: line {line} of the frame at byte {offset}: {message}")
            }
            DamageKind::MissingSegments { count: 1 } => write!(f, "{path}: the segment is missing"),
            DamageKind::MissingSegments { count } => {
                write!(f, "{path}: {count} segments are missing from this one on")
            }
        }
    }
}

/// Streams a log. Memory is bounded by the largest frame.
pub struct LogReader {
    folder: PathBuf,
    segments: Peekable<vec::IntoIter<u32>>,
    last: u32,
    /// Number of the segment expected next.
    expected: u32,
    current: Option<(u32, Segment)>,
    frame: Option<OpenFrame>,
    cipher: Option<LogCipher>,
    /// Lines of encrypted frames that were passed over for want of a key; `None`: such a frame is an error.
    passed_lines: Option<u64>,
    /// After an error there is nothing more to tell.
    finished: bool,
}

struct OpenFrame {
    segment: u32,
    offset: u64,
    text: Vec<u8>,
    position: usize,
    line: u32,
}

impl LogReader {
    /// Reads the log in `folder`, as long as it is now. Encrypted frames need the cipher they were written with;
    /// without it, [`LogError::KeyNeeded`] is the last item.
    pub fn open(folder: &Path, cipher: Option<&LogCipher>) -> Result<Self, LogError> {
        let segments = segment::list(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            last: segments.last().copied().unwrap_or(0),
            segments: segments.into_iter().peekable(),
            expected: 1,
            current: None,
            frame: None,
            cipher: cipher.cloned(),
            passed_lines: None,
            finished: false,
        })
    }

    /// Passes over encrypted frames where there is no cipher: their checksums are checked, their lines counted.
    pub(super) fn passing_encrypted(mut self) -> Self {
        self.passed_lines = Some(0);
        self
    }

    /// Lines of the encrypted frames that were [passed over](Self::passing_encrypted) so far.
    pub(super) fn passed_lines(&self) -> u64 {
        self.passed_lines.unwrap_or(0)
    }

    /// One entry whose place is known.
    pub fn entry_at(
        folder: &Path,
        location: Location,
        cipher: Option<&LogCipher>,
    ) -> Result<Option<LogEntry>, LogError> {
        let path = segment::path(folder, location.segment);
        let read = |error| LogError::io(&path, "read", error);
        let mut segment = Segment::open(&path)?;
        segment.seek(location.offset);
        let Some(Part::Frame { offset, header, payload }) = segment.next_part().map_err(read)? else {
            return Ok(None);
        };
        let place = Place { segment: location.segment, offset };
        let text = match frame::decode(&header, &payload, cipher, place) {
            Ok(text) => text,
            Err(FrameError::KeyNeeded) => return Err(LogError::KeyNeeded { path }),
            Err(FrameError::Foreign) => return Ok(None),
            Err(FrameError::Malformed(error)) => return Err(read(error)),
        };
        let line = text.split_inclusive(|&byte| byte == b'\n').nth(location.line as usize);
        match line.map(envelope::decode) {
            Some(Ok(entry)) => Ok(Some(entry)),
            Some(Err(EnvelopeError::Newer(found))) => {
                Err(LogError::Newer { path, found, supported: FORMAT_VERSION })
            }
            Some(Err(EnvelopeError::Json(_))) | None => Ok(None),
        }
    }

    fn next_item(&mut self) -> Result<Option<LogItem>, LogError> {
        loop {
            if let Some(item) = self.next_line()? {
                return Ok(Some(item));
            }
            let Some((number, segment)) = &mut self.current else {
                let Some(&number) = self.segments.peek() else { return Ok(None) };
                if number > self.expected {
                    let (first, count) = (self.expected, number - self.expected);
                    self.expected = number;
                    return Ok(Some(self.damage(first, 0, DamageKind::MissingSegments { count })));
                }
                self.segments.next();
                self.expected = number + 1;
                self.current = Some((number, Segment::open(&segment::path(&self.folder, number))?));
                continue;
            };
            let number = *number;
            let path = segment::path(&self.folder, number);
            let part = segment.next_part().map_err(|error| LogError::io(&path, "read", error))?;
            match part {
                None => self.current = None,
                Some(Part::Frame { offset, header, payload }) => {
                    if let Some(kind) = self.open_frame(number, offset, &header, &payload)? {
                        return Ok(Some(self.damage(number, offset, kind)));
                    }
                }
                Some(Part::Torn { offset, bytes }) if number == self.last => {
                    return Ok(Some(self.damage(number, offset, DamageKind::TornTail { bytes })));
                }
                Some(Part::Corrupt { offset, bytes } | Part::Torn { offset, bytes }) => {
                    return Ok(Some(self.damage(number, offset, DamageKind::Corrupt { bytes })));
                }
            }
        }
    }

    /// Makes an intact frame the open one, or tells why it cannot be read.
    fn open_frame(
        &mut self,
        segment: u32,
        offset: u64,
        header: &frame::Header,
        payload: &[u8],
    ) -> Result<Option<DamageKind>, LogError> {
        let bytes = header.frame_bytes();
        match frame::decode(header, payload, self.cipher.as_ref(), Place { segment, offset }) {
            Ok(text) => self.frame = Some(OpenFrame { segment, offset, text, position: 0, line: 0 }),
            Err(FrameError::KeyNeeded) => match &mut self.passed_lines {
                Some(passed) => *passed += u64::from(header.lines),
                None => return Err(LogError::KeyNeeded { path: segment::path(&self.folder, segment) }),
            },
            Err(FrameError::Foreign) => return Ok(Some(DamageKind::Foreign { bytes })),
            // With intact checksums only a faulty writer can be the cause.
            Err(FrameError::Malformed(_)) => return Ok(Some(DamageKind::Corrupt { bytes })),
        }
        Ok(None)
    }

    /// The next line of the open frame.
    fn next_line(&mut self) -> Result<Option<LogItem>, LogError> {
        let Some(frame) = &mut self.frame else { return Ok(None) };
        let rest = &frame.text[frame.position..];
        if rest.is_empty() {
            self.frame = None;
            return Ok(None);
        }
        let length = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |at| at + 1);
        let decoded = envelope::decode(&rest[..length]);
        let location = Location { segment: frame.segment, offset: frame.offset, line: frame.line };
        frame.position += length;
        frame.line += 1;
        match decoded {
            Ok(entry) => Ok(Some(LogItem::Entry { location, entry: Box::new(entry) })),
            Err(EnvelopeError::Newer(found)) => Err(LogError::Newer {
                path: segment::path(&self.folder, location.segment),
                found,
                supported: FORMAT_VERSION,
            }),
            Err(EnvelopeError::Json(error)) => {
                let kind = DamageKind::BadEntry { line: location.line, message: error.to_string() };
                Ok(Some(self.damage(location.segment, location.offset, kind)))
            }
        }
    }

    fn damage(&self, segment: u32, offset: u64, kind: DamageKind) -> LogItem {
        LogItem::Damage(Damage { path: segment::path(&self.folder, segment), offset, kind })
    }
}

impl Iterator for LogReader {
    type Item = Result<LogItem, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let item = self.next_item().transpose();
        self.finished = !matches!(item, Some(Ok(_)));
        item
    }
}

//! Reads entries by position, in any order.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::cipher::{FramePlace, LogCipher};
use super::envelope::Parsed;
use super::error::LogError;
use super::lines::{EntryLocation, FrameLines, Line, Unreadable};
use super::segment::{Extent, Part, Segment};
use super::segment_id::SegmentId;
use crate::files::Doing;

/// Bytes of decoded frames that a reader in any order keeps, besides the last one: a few frames of ordinary size. Records
/// that were asked together were written together, so most frames are decoded once per few hundred entries.
const KEPT_BYTES: usize = 32 << 20;

/// Reads entries of a log by position; keeps the most recently decoded frames.
pub struct PlaceReader {
    folder: PathBuf,
    cipher: Option<LogCipher>,
    /// The segment read last: most frames lie in the segment of the one before.
    open: Option<(SegmentId, Segment)>,
    /// Most recently used first.
    frames: VecDeque<Frame>,
    /// Bytes of all of them.
    bytes: usize,
    /// Bytes of them that are kept besides the last one.
    bytes_max: usize,
}

struct Frame {
    segment: SegmentId,
    offset: u64,
    lines: FrameLines,
}

impl PlaceReader {
    /// A reader of the log in `folder`.
    pub fn new(folder: &Path, cipher: Option<&LogCipher>) -> Self {
        Self {
            folder: folder.to_owned(),
            cipher: cipher.cloned(),
            open: None,
            frames: VecDeque::new(),
            bytes: 0,
            bytes_max: KEPT_BYTES,
        }
    }

    /// A reader that is asked for places in the order of the log: it keeps the last frame only.
    pub fn in_order(folder: &Path, cipher: Option<&LogCipher>) -> Self {
        Self { bytes_max: 0, ..Self::new(folder, cipher) }
    }

    /// The record at a position, or [a part of it](crate::Summary), and its JSON; `None` if there is no record.
    pub fn read<R: DeserializeOwned>(
        &mut self,
        place: EntryLocation,
    ) -> Result<Option<(R, Cow<'_, str>)>, LogError> {
        let at = self
            .frames
            .iter()
            .position(|frame| (frame.segment, frame.offset) == (place.segment, place.offset));
        let frame = match at.and_then(|at| self.frames.remove(at)) {
            Some(frame) => frame,
            None => match self.open(place)? {
                Some(lines) => {
                    self.bytes += lines.bytes();
                    Frame { segment: place.segment, offset: place.offset, lines }
                }
                None => return Ok(None),
            },
        };
        self.frames.push_front(frame);
        self.forget();
        let Some(line) = self.frames.front_mut().and_then(|frame| frame.lines.line(place.line)) else {
            return Ok(None);
        };
        parsed(&self.folder, &line)
    }

    fn open(&mut self, place: EntryLocation) -> Result<Option<FrameLines>, LogError> {
        let path = place.segment.path(&self.folder);
        // A segment that was opened before this frame was written does not have it.
        let kept = self.open.take_if(|(id, segment)| *id == place.segment && place.offset < segment.length());
        let mut segment = match kept {
            Some((_, segment)) => segment,
            None => Segment::open(&self.folder, place.segment, Extent::Open)?,
        };
        segment.seek(place.offset);
        let part = segment.next_part().doing("read", &path)?;
        self.open = Some((place.segment, segment));
        let Some(Part::Frame { offset, header, payload }) = part else { return Ok(None) };
        let place = FramePlace { segment: place.segment, offset };
        match FrameLines::open(place, &header, &payload, self.cipher.as_ref()) {
            Ok(lines) => Ok(Some(lines)),
            Err(Unreadable::KeyNeeded) => Err(LogError::KeyNeeded { path }),
            Err(Unreadable::Damaged(_)) => Ok(None),
        }
    }

    /// Drops the least recently used frames.
    fn forget(&mut self) {
        let last = self.frames.front().map_or(0, |frame| frame.lines.bytes());
        while self.bytes - last > self.bytes_max
            && let Some(frame) = self.frames.pop_back()
        {
            self.bytes -= frame.lines.bytes();
        }
    }
}

fn parsed<'a, R: DeserializeOwned>(
    folder: &Path,
    line: &Line<'a>,
) -> Result<Option<(R, Cow<'a, str>)>, LogError> {
    match line.parse() {
        Ok(Parsed::Record { record, json }) => Ok(Some((record, json))),
        Ok(Parsed::Event(_)) => Ok(None),
        Err(error) => line.damage(folder, error).map(|_| None),
    }
}

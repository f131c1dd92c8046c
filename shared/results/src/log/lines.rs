//! The lines of one frame, and their places.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::cipher::{FramePlace, LogCipher};
use super::damage::{Damage, DamageKind};
use super::envelope::{self, EnvelopeError, FORMAT_VERSION, Parsed};
use super::error::LogError;
use super::frame::{self, FrameError, FrameHeader};
use super::segment_id::SegmentId;

/// The position of a line. Positions are ordered as the log was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryLocation {
    pub segment: SegmentId,
    /// Start of its frame in the segment, in bytes.
    pub offset: u64,
    /// Line within the frame, from 0.
    pub line: u32,
}

/// A decoded frame.
#[derive(Clone, Debug)]
pub struct FrameLines {
    segment: SegmentId,
    offset: u64,
    text: Vec<u8>,
    /// Start of the next line.
    position: usize,
    line: u32,
}

/// Why an intact frame cannot be decoded.
pub(super) enum Unreadable {
    /// It is encrypted, and no key was given.
    KeyNeeded,
    /// Another problem; reading can continue behind it.
    Damaged(DamageKind),
}

/// One line of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    location: EntryLocation,
    bytes: &'a [u8],
}

impl FrameLines {
    /// Decodes an intact frame.
    pub(super) fn open(
        place: FramePlace,
        header: &FrameHeader,
        payload: &[u8],
        cipher: Option<&LogCipher>,
    ) -> Result<Self, Unreadable> {
        match frame::decode(header, payload, cipher, place) {
            Ok(text) => Ok(Self { segment: place.segment, offset: place.offset, text, position: 0, line: 0 }),
            Err(FrameError::KeyNeeded) => Err(Unreadable::KeyNeeded),
            Err(FrameError::Foreign) => {
                Err(Unreadable::Damaged(DamageKind::Foreign { bytes: header.frame_bytes() }))
            }
            // With intact checksums, only a faulty writer can be the cause.
            Err(FrameError::Malformed(_)) => {
                Err(Unreadable::Damaged(DamageKind::Corrupt { bytes: header.frame_bytes() }))
            }
        }
    }

    /// The line of this number, from 0; `None` if there is none. Cheapest for rising numbers.
    pub(super) fn line(&mut self, number: u32) -> Option<Line<'_>> {
        if number < self.line {
            (self.position, self.line) = (0, 0);
        }
        while self.line < number {
            self.next()?;
        }
        self.next()
    }

    /// Length of the lines in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The next line; `None` at the end. A lending iterator.
    #[expect(
        clippy::should_implement_trait,
        reason = "the lines lie in the frame, which `Iterator` cannot say"
    )]
    pub fn next(&mut self) -> Option<Line<'_>> {
        let rest = &self.text[self.position..];
        if rest.is_empty() {
            return None;
        }
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let location = EntryLocation { segment: self.segment, offset: self.offset, line: self.line };
        self.position += length;
        self.line += 1;
        Some(Line { location, bytes: &rest[..length] })
    }
}

impl<'a> Line<'a> {
    /// Its position.
    pub fn location(&self) -> EntryLocation {
        self.location
    }

    /// Parses it: the whole record, or [a part of it](crate::Summary), and the record's JSON; or an event.
    ///
    /// # Errors
    /// It is neither, or one of a later version.
    pub fn parse<R: DeserializeOwned>(&self) -> Result<Parsed<'a, R>, EnvelopeError> {
        envelope::parse(self.bytes)
    }

    /// Converts an error in this line: damage, or the end of reading.
    pub fn damage(&self, folder: &Path, error: EnvelopeError) -> Result<Damage, LogError> {
        let path = self.location.segment.path(folder);
        match error {
            EnvelopeError::Newer(found) => Err(LogError::Newer { path, found, supported: FORMAT_VERSION }),
            EnvelopeError::Json(error) => {
                let kind = DamageKind::BadEntry { line: self.location.line, message: error.to_string() };
                Ok(Damage { path, offset: self.location.offset, kind })
            }
        }
    }
}

//! Reads a segment frame by frame, and recovers behind damage.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::damage::DamageKind;
use super::error::LogError;
use super::frame::{FrameHeader, HEADER_BYTES, MAGIC};
use super::segment_id::SegmentId;
use super::synced::{SegmentEnd, Synced};
use crate::files::Doing;

/// File systems lose unsynced bytes in blocks of at least this size.
const BLOCK_BYTES: u64 = 512;

/// Bytes searched at a time for the next frame.
const SEARCH_WINDOW_BYTES: usize = 64 << 10;

/// A part of a segment.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// An intact frame.
    Frame {
        /// Where it starts.
        offset: u64,
        header: FrameHeader,
        /// Its payload, still compressed.
        payload: Vec<u8>,
    },
    /// Bytes that are not an intact frame and not the result of a crash.
    Corrupt {
        /// Where they start.
        offset: u64,
        /// Its length.
        bytes: u64,
    },
    /// Synced data is missing.
    Lost {
        /// Its expected position.
        offset: u64,
        /// The actual finding.
        kind: DamageKind,
    },
    /// A torn tail: the beginning of a frame at the end of the file, as after a crash, or whatever is behind a fixed end. None of
    /// it was acknowledged, as far as known.
    Torn {
        /// Its start; everything before is intact.
        offset: u64,
        /// Its length.
        bytes: u64,
    },
}

/// How much of a segment counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What its writer has synced, if it lives, else what is there.
    Open,
    /// What is there.
    Whole,
    /// What is before this end, which a later writer fixed.
    Fixed(SegmentEnd),
}

/// Reads a segment from front to back.
pub struct Segment {
    reader: BufReader<File>,
    offset: u64,
    length: u64,
    /// Bytes behind `length` that do not count.
    rest: u64,
    /// Known to be synced up to here, and not yet compared.
    synced: Option<SegmentEnd>,
}

impl Segment {
    /// Opens a segment at its current length, as far as it counts.
    pub fn open(folder: &Path, id: SegmentId, extent: Extent) -> Result<Self, LogError> {
        let path = id.path(folder);
        let file = File::open(&path).doing("open", &path)?;
        // The length first, so that data of a writer that starts later is not read.
        let length = file.metadata().doing("read", &path)?.len();
        let mark = Synced::read(folder, id).doing("read how far was synced", &path)?;
        let (counted, synced) = match (extent, mark) {
            (Extent::Fixed(end), _) => (length.min(end.bytes), Some(end)),
            // The length may be older than the synced position.
            (Extent::Open, Some(mark)) if mark.live => (length.min(mark.end.bytes), None),
            (_, mark) => (length, mark.map(|mark| mark.end)),
        };
        let rest = if matches!(extent, Extent::Fixed(_)) { length - counted } else { 0 };
        let synced = synced.filter(|end| end.bytes > 0);
        Ok(Self { reader: BufReader::new(file), offset: 0, length: counted, rest, synced })
    }

    /// Moves to a known frame.
    pub fn seek(&mut self, offset: u64) {
        self.offset = offset;
        self.synced = self.synced.filter(|synced| synced.bytes > offset);
    }

    /// Length of the segment when it was opened, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The next part; `None` at the end.
    pub fn next_part(&mut self) -> io::Result<Option<Part>> {
        let start = self.offset;
        if start >= self.length {
            let missing = self.synced.take().map(|synced| DamageKind::Cut { bytes: synced.bytes - start });
            if let Some(kind) = missing {
                return Ok(Some(Part::Lost { offset: start, kind }));
            }
            let rest = std::mem::take(&mut self.rest);
            return Ok((rest > 0).then_some(Part::Torn { offset: start, bytes: rest }));
        }
        if let Some((header, payload)) = self.frame_at(start)? {
            let end = SegmentEnd { bytes: start + header.frame_bytes(), crc: header.crc() };
            if let Some(synced) = self.synced.take_if(|synced| synced.bytes <= end.bytes)
                && synced != end
            {
                return Ok(Some(Part::Lost { offset: synced.bytes, kind: DamageKind::Altered }));
            }
            self.offset = end.bytes;
            return Ok(Some(Part::Frame { offset: start, header, payload }));
        }
        let next = self.find_frame(start + 1)?;
        self.offset = next.unwrap_or(self.length);
        let torn = next.is_none() && self.synced.is_none() && self.is_torn(start)?;
        // Corruption is reported once, also if data behind it is missing.
        let reached = next.unwrap_or(u64::MAX);
        self.synced = self.synced.filter(|synced| synced.bytes > reached);
        let (offset, bytes) = (start, self.offset - start);
        Ok(Some(if torn { Part::Torn { offset, bytes } } else { Part::Corrupt { offset, bytes } }))
    }

    /// Whether the rest of the file from here, which is not a frame, is the result of a crash: the beginning of a
    /// frame, or zeros that the file system had not yet filled. A whole frame with a flipped bit is not.
    fn is_torn(&mut self, offset: u64) -> io::Result<bool> {
        let bytes = self.length - offset;
        if bytes < HEADER_BYTES as u64 {
            return Ok(true);
        }
        self.go_to(offset)?;
        let mut header = [0; HEADER_BYTES];
        self.reader.read_exact(&mut header)?;
        if FrameHeader::decode(&header).is_some_and(|header| bytes < header.frame_bytes()) {
            return Ok(true);
        }
        let end = bytes.min(BLOCK_BYTES);
        self.go_to(self.length - end)?;
        let mut last = [0; BLOCK_BYTES as usize];
        let last = &mut last[..end as usize];
        self.reader.read_exact(last)?;
        Ok(last.iter().all(|byte| *byte == 0))
    }

    /// The frame that starts exactly at `offset`, if an intact one does.
    fn frame_at(&mut self, offset: u64) -> io::Result<Option<(FrameHeader, Vec<u8>)>> {
        if self.length - offset < HEADER_BYTES as u64 {
            return Ok(None);
        }
        self.go_to(offset)?;
        let mut bytes = [0; HEADER_BYTES];
        self.reader.read_exact(&mut bytes)?;
        let Some(header) = FrameHeader::decode(&bytes) else { return Ok(None) };
        // Checked before memory is allocated: a length is trusted only within the file.
        if self.length - offset < header.frame_bytes() {
            return Ok(None);
        }
        let mut payload = vec![0; header.payload_bytes as usize];
        self.reader.read_exact(&mut payload)?;
        Ok(header.matches(&payload).then_some((header, payload)))
    }

    /// The start of the first intact frame at or behind `offset`.
    fn find_frame(&mut self, mut offset: u64) -> io::Result<Option<u64>> {
        let mut window = vec![0; SEARCH_WINDOW_BYTES];
        while self.length.saturating_sub(offset) >= HEADER_BYTES as u64 {
            let bytes = usize::try_from(self.length - offset).unwrap_or(usize::MAX).min(window.len());
            self.go_to(offset)?;
            self.reader.read_exact(&mut window[..bytes])?;
            for (at, candidate) in window[..bytes].windows(MAGIC.len()).enumerate() {
                if candidate == MAGIC && self.frame_at(offset + at as u64)?.is_some() {
                    return Ok(Some(offset + at as u64));
                }
            }
            // The windows overlap, to find a magic across the border.
            offset += (bytes - (MAGIC.len() - 1)) as u64;
        }
        Ok(None)
    }

    fn go_to(&mut self, offset: u64) -> io::Result<()> {
        // A relative seek keeps the read buffer if the target is inside it, as it is from frame to frame.
        let position = self.reader.stream_position()?;
        match i64::try_from(i128::from(offset) - i128::from(position)) {
            Ok(distance) => self.reader.seek_relative(distance),
            Err(_) => self.reader.seek(SeekFrom::Start(offset)).map(|_| ()),
        }
    }
}

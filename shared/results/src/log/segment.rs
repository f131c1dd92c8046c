//! Reads a segment frame by frame, with recovery behind damage.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::error::LogError;
use super::frame::{HEADER_BYTES, Header, MAGIC};

/// Bytes searched at a time for the next frame.
const SEARCH_WINDOW_BYTES: usize = 64 << 10;

/// What lies at a place of a segment.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// An intact frame.
    Frame {
        /// Where it starts.
        offset: u64,
        /// Its header.
        header: Header,
        /// Its payload, still compressed.
        payload: Vec<u8>,
    },
    /// Bytes that are no intact frame, with an intact frame behind them.
    Corrupt {
        /// Where they start.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// Bytes that are no intact frame, up to the end of the file.
    Torn {
        /// Where they start: everything before is good.
        offset: u64,
        /// How many.
        bytes: u64,
    },
}

/// Reads a segment from front to back.
pub struct Segment {
    reader: BufReader<File>,
    offset: u64,
    length: u64,
}

impl Segment {
    /// Opens a segment as long as it is now: what is appended meanwhile is not seen.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let file = File::open(path).map_err(|error| LogError::io(path, "open", error))?;
        let length = file.metadata().map_err(|error| LogError::io(path, "read", error))?.len();
        Ok(Self { reader: BufReader::new(file), offset: 0, length })
    }

    /// Goes to a frame whose place is known.
    pub fn seek(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Length of the segment when it was opened, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The next part; `None` at the end.
    pub fn next_part(&mut self) -> io::Result<Option<Part>> {
        if self.offset >= self.length {
            return Ok(None);
        }
        let start = self.offset;
        if let Some((header, payload)) = self.frame_at(start)? {
            self.offset += header.frame_bytes();
            return Ok(Some(Part::Frame { offset: start, header, payload }));
        }
        match self.find_frame(start + 1)? {
            Some(next) => {
                self.offset = next;
                Ok(Some(Part::Corrupt { offset: start, bytes: next - start }))
            }
            None => {
                self.offset = self.length;
                Ok(Some(Part::Torn { offset: start, bytes: self.length - start }))
            }
        }
    }

    /// The frame that starts exactly at `offset`, if an intact one does.
    fn frame_at(&mut self, offset: u64) -> io::Result<Option<(Header, Vec<u8>)>> {
        if self.length - offset < HEADER_BYTES as u64 {
            return Ok(None);
        }
        self.go_to(offset)?;
        let mut bytes = [0; HEADER_BYTES];
        self.reader.read_exact(&mut bytes)?;
        let Some(header) = Header::decode(&bytes) else { return Ok(None) };
        // Checked before memory is taken: a length is believed only as far as the file reaches.
        if self.length - offset < header.frame_bytes() {
            return Ok(None);
        }
        let mut payload = vec![0; header.payload_bytes as usize];
        self.reader.read_exact(&mut payload)?;
        Ok(header.matches(&payload).then_some((header, payload)))
    }

    /// Where the first intact frame at or behind `offset` starts.
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
            // The windows overlap, so that a magic across the border is found, too.
            offset += (bytes - (MAGIC.len() - 1)) as u64;
        }
        Ok(None)
    }

    fn go_to(&mut self, offset: u64) -> io::Result<()> {
        // A relative seek keeps the read buffer when the target lies inside it, as it does from frame to frame.
        let position = self.reader.stream_position()?;
        match i64::try_from(i128::from(offset) - i128::from(position)) {
            Ok(distance) => self.reader.seek_relative(distance),
            Err(_) => self.reader.seek(SeekFrom::Start(offset)).map(|_| ()),
        }
    }
}

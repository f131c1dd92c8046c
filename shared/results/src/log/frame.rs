//! A frame: the entries of one commit, or a part of a large one, as they lie on disk.
//!
//! | bytes | content (numbers are little endian) |
//! |---|---|
//! | 0..8 | magic, for finding the next frame behind damage |
//! | 8..12 | length of the payload |
//! | 12..16 | length of the lines before compression |
//! | 16..20 | number of lines |
//! | 20..24 | CRC-32 of the payload |
//! | 24..28 | CRC-32 of bytes 0..24 |
//! | 28.. | payload: one zstd frame holding JSON lines |
//!
//! The header has a checksum of its own, so that a damaged length is never followed.

use std::io::{self, Read};

/// First bytes of every frame. Like PNG's, they show when a transfer changed line ends or lost the high bit.
pub const MAGIC: [u8; 8] = *b"\x89KGF\r\n\x1a\n";

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 28;

/// Longest entry, in bytes of JSON: three rounds with answers of 10 MB, every character escaped, fit.
pub const MAX_ENTRY_BYTES: usize = 256 << 20;

/// Most bytes of lines in a frame. The writer stays far below unless a single entry is as long as this.
pub const MAX_FRAME_BYTES: usize = 2 * MAX_ENTRY_BYTES;

/// zstd level: 3 is the library's default; higher ones cost several times the CPU for a few per cent.
const ZSTD_LEVEL: i32 = 3;

/// What a frame's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the payload in bytes.
    pub payload_bytes: u32,
    /// Length of the lines in bytes.
    pub line_bytes: u32,
    /// Number of lines.
    pub lines: u32,
    payload_crc: u32,
}

impl Header {
    /// Reads a header; `None` if the bytes are none.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let number = |at: usize| {
            let mut four = [0; 4];
            four.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(four)
        };
        if bytes[..8] != MAGIC || number(24) != crc32fast::hash(&bytes[..24]) {
            return None;
        }
        let header = Self {
            payload_bytes: number(8),
            line_bytes: number(12),
            lines: number(16),
            payload_crc: number(20),
        };
        (header.line_bytes as usize <= MAX_FRAME_BYTES).then_some(header)
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.line_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.lines.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..24]);
        bytes[24..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Whether these are the payload's bytes as they were written.
    pub fn matches(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_bytes as usize && crc32fast::hash(payload) == self.payload_crc
    }

    /// Length of the whole frame in bytes.
    pub fn frame_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.payload_bytes)
    }
}

/// Makes frames; reuses the compressor's memory.
pub struct Encoder(zstd::bulk::Compressor<'static>);

impl Encoder {
    /// An encoder.
    pub fn new() -> io::Result<Self> {
        Ok(Self(zstd::bulk::Compressor::new(ZSTD_LEVEL)?))
    }

    /// The frame of `lines` lines of text, at most [`MAX_FRAME_BYTES`] long.
    pub fn encode(&mut self, text: &[u8], lines: u32) -> io::Result<Vec<u8>> {
        let payload = self.0.compress(text)?;
        let length =
            |bytes: usize| u32::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
        let header = Header {
            payload_bytes: length(payload.len())?,
            line_bytes: length(text.len())?,
            lines,
            payload_crc: crc32fast::hash(&payload),
        };
        let mut frame = Vec::with_capacity(HEADER_BYTES + payload.len());
        frame.extend_from_slice(&header.encode());
        frame.extend_from_slice(&payload);
        Ok(frame)
    }
}

/// The lines of a payload that [matches](Header::matches) its header. Never more bytes than the header says.
pub fn decompress(header: &Header, payload: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(header.line_bytes as usize);
    // One byte more than promised is enough to see that the promise was wrong.
    zstd::stream::read::Decoder::new(payload)?
        .take(u64::from(header.line_bytes) + 1)
        .read_to_end(&mut text)?;
    if text.len() != header.line_bytes as usize {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the payload has another length than the header says",
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(frame: &[u8]) -> (&[u8; HEADER_BYTES], &[u8]) {
        let (header, payload) = frame.split_first_chunk().unwrap();
        (header, payload)
    }

    proptest! {
        #[test]
        fn a_frame_reads_back_and_every_flipped_bit_is_found(
            text in prop::collection::vec(any::<u8>(), 0..300),
            flip in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let mut frame = Encoder::new().unwrap().encode(&text, 2).unwrap();
            let (header, payload) = split(&frame);
            let header = Header::decode(header).unwrap();
            prop_assert!(header.matches(payload));
            prop_assert_eq!(header.frame_bytes(), frame.len() as u64);
            prop_assert_eq!(decompress(&header, payload).unwrap(), text);

            let at = flip.index(frame.len());
            frame[at] ^= 1 << bit;
            let (header, payload) = split(&frame);
            prop_assert!(Header::decode(header).is_none_or(|header| !header.matches(payload)));
        }
    }
}

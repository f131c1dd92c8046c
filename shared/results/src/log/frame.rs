//! A frame: the entries of one commit, or a part of a large one, in their format on disk.
//!
//! | bytes | content (numbers are little endian) |
//! |---|---|
//! | 0..8 | magic, for finding the next frame behind damage |
//! | 8..12 | length of the payload |
//! | 12..16 | length of the lines before compression |
//! | 16..20 | number of lines; the highest bit says that the payload is encrypted |
//! | 20..24 | CRC-32 of the payload |
//! | 24..28 | CRC-32 of bytes 0..24 |
//! | 28.. | payload: one zstd frame holding JSON lines, or the same encrypted: nonce, text, authentication code |
//!
//! The header has its own checksum, so that a damaged length is never followed. Checksums cover the bytes on disk, so
//! that intact frames can be recognised without the key. Encryption binds a frame to bytes 0..20 of its header, to
//! its segment's number (32 bits), to its offset (64 bits) and, unless that is 0, to its writer's number (32 bits),
//! in this order.

use std::cell::RefCell;
use std::io::{self, Read};

use super::cipher::{FramePlace, LogCipher, OVERHEAD_BYTES};

/// First bytes of every frame. As in PNG, they reveal transfers that changed line ends or lost the high bit.
pub const MAGIC: [u8; 8] = *b"\x89KGF\r\n\x1a\n";

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 28;

/// Longest entry, in bytes of JSON: three rounds with answers of 10 MB, every character escaped, fit.
pub const ENTRY_BYTES_MAX: usize = 256 << 20;

/// Maximum size of the lines of a frame. The writer stays far below, unless a single entry is this long.
pub const FRAME_BYTES_MAX: usize = 2 * ENTRY_BYTES_MAX;

/// zstd level: 3 is the library's default; higher ones cost several times the CPU for a few per cent.
const ZSTD_LEVEL: i32 = 3;

/// Bytes of memory allocated for lines before any was read, whatever length the header claims.
const AT_ONCE_BYTES: usize = 16 << 20;

/// The bit of the line count that marks an encrypted payload.
const ENCRYPTED: u32 = 1 << 31;

/// Bytes of the header that encryption authenticates: all but the checksums, which depend on its result.
const AUTHENTICATED_BYTES: usize = 20;

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the payload in bytes.
    pub payload_bytes: u32,
    /// Length of the lines in bytes.
    pub line_bytes: u32,
    /// Number of lines.
    pub lines: u32,
    /// Whether the payload is encrypted.
    pub encrypted: bool,
    payload_crc: u32,
}

impl FrameHeader {
    /// Parses a header; `None` if it is invalid.
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
            lines: number(16) & !ENCRYPTED,
            encrypted: number(16) & ENCRYPTED != 0,
            payload_crc: number(20),
        };
        (header.line_bytes as usize <= FRAME_BYTES_MAX).then_some(header)
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.line_bytes.to_le_bytes());
        let flag = if self.encrypted { ENCRYPTED } else { 0 };
        bytes[16..20].copy_from_slice(&(self.lines | flag).to_le_bytes());
        bytes[20..24].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..24]);
        bytes[24..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Checksum of the header, which contains that of the payload: identifies the frame.
    pub fn crc(&self) -> u32 {
        crc32fast::hash(&self.encode()[..24])
    }

    /// Whether these are the payload's bytes as they were written.
    pub fn matches(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_bytes as usize && crc32fast::hash(payload) == self.payload_crc
    }

    /// The data that encryption binds the payload to.
    fn associated(&self, place: FramePlace) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(AUTHENTICATED_BYTES + 16);
        bytes.extend_from_slice(&self.encode()[..AUTHENTICATED_BYTES]);
        bytes.extend_from_slice(&place.segment.epoch.to_le_bytes());
        bytes.extend_from_slice(&place.segment.number.to_le_bytes());
        bytes.extend_from_slice(&place.offset.to_le_bytes());
        bytes
    }

    /// Length of the whole frame in bytes.
    pub fn frame_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.payload_bytes)
    }
}

/// Encodes frames; reuses the compressor's memory.
pub struct Encoder(zstd::bulk::Compressor<'static>);

impl Encoder {
    pub fn new() -> io::Result<Self> {
        Ok(Self(zstd::bulk::Compressor::new(ZSTD_LEVEL)?))
    }

    /// Encodes `lines` lines of text, at most [`FRAME_BYTES_MAX`] long; encrypted if a cipher is given, and then
    /// valid only at this position.
    pub fn encode(
        &mut self,
        text: &[u8],
        lines: u32,
        cipher: Option<(&LogCipher, FramePlace)>,
    ) -> io::Result<Vec<u8>> {
        let mut payload = self.0.compress(text)?;
        let too_long = || io::Error::from(io::ErrorKind::InvalidInput);
        let length = |bytes: usize| u32::try_from(bytes).map_err(|_| too_long());
        let overhead = if cipher.is_some() { OVERHEAD_BYTES } else { 0 };
        let mut header = FrameHeader {
            payload_bytes: length(payload.len() + overhead)?,
            line_bytes: length(text.len())?,
            lines,
            encrypted: cipher.is_some(),
            payload_crc: 0,
        };
        if let Some((cipher, place)) = cipher {
            payload = cipher.encrypt(&payload, &header.associated(place)).ok_or_else(too_long)?;
        }
        header.payload_crc = crc32fast::hash(&payload);
        let mut frame = Vec::with_capacity(HEADER_BYTES + payload.len());
        frame.extend_from_slice(&header.encode());
        frame.extend_from_slice(&payload);
        Ok(frame)
    }
}

/// Why an intact payload cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It is encrypted, and no key was given.
    #[error("the frame is encrypted")]
    KeyNeeded,
    /// It was encrypted with another key, or for another position.
    #[error("the frame is encrypted with another key, or was moved here from another place")]
    Foreign,
    /// It is not compressed text of the length in the header.
    #[error(transparent)]
    Malformed(#[from] io::Error),
}

/// Decodes an intact payload to its lines.
pub fn decode(
    header: &FrameHeader,
    payload: &[u8],
    cipher: Option<&LogCipher>,
    place: FramePlace,
) -> Result<Vec<u8>, FrameError> {
    if !header.encrypted {
        return Ok(decompress(header, payload)?);
    }
    let cipher = cipher.ok_or(FrameError::KeyNeeded)?;
    let payload = cipher.decrypt(payload, &header.associated(place)).ok_or(FrameError::Foreign)?;
    Ok(decompress(header, &payload)?)
}

thread_local! {
    /// The memory of a decoder, which is larger than most frames.
    static CONTEXT: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Never returns more bytes than the header says.
fn decompress(header: &FrameHeader, payload: &[u8]) -> io::Result<Vec<u8>> {
    let bytes = header.line_bytes as usize;
    // In one call, the decoder writes to the text itself; a stream needs a window beside it, and copies.
    let text = if bytes <= AT_ONCE_BYTES {
        CONTEXT.with_borrow_mut(|context| match context {
            Some(known) => known.decompress(payload, bytes),
            None => context.insert(zstd::bulk::Decompressor::new()?).decompress(payload, bytes),
        })?
    } else {
        let mut text = Vec::with_capacity(AT_ONCE_BYTES);
        // One more byte is enough to detect a wrong length.
        zstd::stream::read::Decoder::with_buffer(payload)?
            .take(u64::from(header.line_bytes) + 1)
            .read_to_end(&mut text)?;
        text
    };
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
    use crate::log::SegmentId;

    fn segment(epoch: u32, number: u32) -> SegmentId {
        SegmentId { epoch, number }
    }

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
            encrypted in any::<bool>(),
        ) {
            let cipher = LogCipher::generate();
            let cipher = encrypted.then_some(&cipher);
            let place = FramePlace { segment: segment(2, 3), offset: 1 << 40 };
            let mut frame =
                Encoder::new().unwrap().encode(&text, 2, cipher.map(|cipher| (cipher, place))).unwrap();
            let (header, payload) = split(&frame);
            let header = FrameHeader::decode(header).unwrap();
            prop_assert!(header.matches(payload));
            prop_assert_eq!(header.frame_bytes(), frame.len() as u64);
            prop_assert_eq!((header.lines, header.encrypted), (2, encrypted));
            prop_assert_eq!(decode(&header, payload, cipher, place).unwrap(), text);

            let at = flip.index(frame.len());
            frame[at] ^= 1 << bit;
            let (header, payload) = split(&frame);
            prop_assert!(FrameHeader::decode(header).is_none_or(|header| !header.matches(payload)));
        }
    }

    #[test]
    fn a_wrong_length_is_found_also_where_the_text_is_longer_than_one_call_decodes() {
        let place = FramePlace { segment: segment(1, 1), offset: 0 };
        for bytes in [3000, AT_ONCE_BYTES, AT_ONCE_BYTES + 1] {
            let text = vec![b'x'; bytes];
            let frame = Encoder::new().unwrap().encode(&text, 1, None).unwrap();
            let (header, payload) = split(&frame);
            let header = FrameHeader::decode(header).unwrap();
            assert!(decode(&header, payload, None, place).unwrap() == text);
            for line_bytes in [header.line_bytes - 1, header.line_bytes + 1] {
                let wrong = decode(&FrameHeader { line_bytes, ..header }, payload, None, place);
                assert!(matches!(wrong, Err(FrameError::Malformed(_))), "{bytes} bytes as {line_bytes}");
            }
        }
    }

    #[test]
    fn an_encrypted_frame_opens_in_its_own_place_with_its_own_key_only() {
        let cipher = LogCipher::generate();
        let place = FramePlace { segment: segment(1, 1), offset: 0 };
        let frame = Encoder::new().unwrap().encode(b"{}\n", 1, Some((&cipher, place))).unwrap();
        let (header, payload) = split(&frame);
        let header = FrameHeader::decode(header).unwrap();
        assert!(matches!(decode(&header, payload, None, place), Err(FrameError::KeyNeeded)));
        let foreign = |header: &FrameHeader, cipher: &LogCipher, place: FramePlace| {
            matches!(decode(header, payload, Some(cipher), place), Err(FrameError::Foreign))
        };
        assert!(foreign(&header, &LogCipher::generate(), place));
        assert!(foreign(&header, &cipher, FramePlace { segment: segment(1, 2), ..place }));
        assert!(foreign(&header, &cipher, FramePlace { segment: segment(7, 1), ..place }));
        assert!(foreign(&header, &cipher, FramePlace { offset: 1, ..place }));
        assert!(foreign(&FrameHeader { lines: 2, ..header }, &cipher, place));
        assert!(!foreign(&header, &cipher, place));
    }
}

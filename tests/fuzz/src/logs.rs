//! The record log: frames, lines, and whole segments.

use domain::Record;
use results::log::cipher::FramePlace;
use results::log::frame::{self, FrameHeader, HEADER_BYTES, MAGIC};
use results::log::{LogError, LogItem, LogLine, LogReader, Parsed, SegmentId, envelope};

/// Maximum length that a header made by these targets may claim. Longer ones are tested elsewhere, because they take
/// memory that the input does not explain.
const CLAIMED_BYTES_MAX: u32 = 1 << 20;

/// A frame with correct checksums around any payload and lengths, because a fuzzer would not find such checksums.
fn framed(claims: &[u8; 8], payload: &[u8]) -> Vec<u8> {
    let [a, b, c, d, lines @ ..] = *claims;
    let line_bytes = u32::from_le_bytes([a, b, c, d]) % CLAIMED_BYTES_MAX;
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&line_bytes.to_le_bytes());
    bytes.extend_from_slice(&lines);
    bytes.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Reads a line; a line that was read must read the same after it was written.
fn line(bytes: &[u8]) {
    let Ok(parsed) = envelope::parse::<Record>(bytes) else { return };
    let again = match &parsed {
        Parsed::Record { record, .. } => {
            LogLine::Record(serde_json::to_string(record).expect("a record that was read is JSON"))
        }
        Parsed::Event(json) => LogLine::Event(json.to_string()),
    };
    let mut written = Vec::new();
    envelope::encode(&again, &mut written);
    match (envelope::parse::<Record>(&written).expect("what was written is read"), parsed) {
        (Parsed::Record { record, .. }, Parsed::Record { record: before, .. }) => assert_eq!(record, before),
        (event, before) => assert_eq!(event, before),
    }
}

/// A payload behind a header: its lines are as long as the header says.
fn payload(claims: &[u8; 8], bytes: &[u8]) {
    let frame = framed(claims, bytes);
    let (head, payload) = frame.split_first_chunk::<HEADER_BYTES>().expect("a frame has a header");
    let header = FrameHeader::decode(head).expect("the checksums are right");
    assert!(header.matches(payload));
    let place = FramePlace { segment: SegmentId::first(1), offset: 0 };
    if let Ok(text) = frame::decode(&header, payload, None, place) {
        assert_eq!(text.len(), header.line_bytes as usize);
        text.split_inclusive(|&byte| byte == b'\n').for_each(line);
    }
}

/// A whole segment on a disk, read twice.
fn segment(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let id = SegmentId::first(1);
    std::fs::write(id.path(folder.path()), bytes).expect("a temporary file");
    let read = || {
        let reader = LogReader::open(folder.path(), None).expect("the folder is there");
        let told = |item: Result<LogItem, LogError>| match item {
            Ok(LogItem::Record { record, .. }) => format!("record {}", record.attempt.id),
            Ok(LogItem::Event { json, .. }) => format!("event {json}"),
            Ok(LogItem::Damage(damage)) => damage.to_string(),
            Err(error) => error.to_string(),
        };
        reader.map(told).collect::<Vec<_>>()
    };
    assert_eq!(read(), read(), "reading changes nothing");
}

/// The first byte selects how the others are read: as a line, a payload, or a segment of raw and framed pieces.
pub fn log_frames(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => line(rest),
        1 => {
            if let Some((claims, rest)) = rest.split_first_chunk::<8>() {
                payload(claims, rest);
            }
        }
        2 => segment(rest),
        _ => {
            let piece = |piece: &[u8]| match piece.split_first_chunk::<8>() {
                Some((claims, rest)) if claims[7] & 1 == 0 => framed(claims, rest),
                _ => piece.to_vec(),
            };
            segment(&rest.chunks(usize::from(kind).max(9)).map(piece).collect::<Vec<_>>().concat());
        }
    }
}

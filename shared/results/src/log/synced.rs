//! How much of a segment is known to be on disk: a file with the name of the segment and the extension `synced`.
//!
//! Its writer locks this file while it writes the segment, and overwrites it after every sync. The file itself is
//! synced only when the segment is closed. That is enough, because its content was true when it was written, and a
//! segment never gets shorter:
//!
//! - While the writer lives, readers read up to this position. Data behind it may be lost in a crash of the machine.
//! - Afterwards every intact frame counts, also behind it, and a segment that ends earlier is damaged. A crash of the
//!   machine may leave an older version of this file, or none.
//!
//! | bytes | content (numbers are little endian) |
//! |---|---|
//! | 0..8 | magic |
//! | 8..16 | length of the segment up to its last synced frame |
//! | 16..20 | [`FrameHeader::crc`](super::frame::FrameHeader::crc) of that frame |
//! | 20..24 | CRC-32 of bytes 0..20 |

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::segment_id::SegmentId;
use crate::files::{self, if_there};

const MAGIC: [u8; 8] = *b"\x89KGS\r\n\x1a\n";

const FILE_BYTES: usize = 24;

/// File name extension.
const EXTENSION: &str = "synced";

/// Attempts to read a file that is being overwritten, a few microseconds apart.
const READS: usize = 1000;

/// The end of a segment, now or at some earlier time: always behind a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEnd {
    /// Its length in bytes.
    pub bytes: u64,
    /// Checksum of the header of the last frame: identifies that frame.
    pub crc: u32,
}

/// Facts about a segment, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Synced {
    /// The synced end.
    pub end: SegmentEnd,
    /// Whether it is being written now.
    pub live: bool,
}

/// The writer's handle.
#[derive(Debug)]
pub(super) struct SyncedMark {
    file: File,
}

/// The synced file of a segment.
pub(super) fn path_of(segment: SegmentId, folder: &Path) -> PathBuf {
    segment.path(folder).with_extension(EXTENSION)
}

impl SyncedMark {
    /// Creates or replaces the file of a segment. It gets its name only when it is locked, so that no reader sees it
    /// unlocked while its writer lives.
    pub(super) fn begin(folder: &Path, segment: SegmentId, end: SegmentEnd) -> io::Result<Self> {
        let path = path_of(segment, folder);
        let file = files::replace_with(&path, |file| {
            // On a file system without locks, readers also see unsynced data.
            if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            file.write_all_at(&encode(end), 0)
        })?;
        Ok(Self { file })
    }

    /// Stores that the segment is synced up to here.
    pub(super) fn set(&self, end: SegmentEnd) -> io::Result<()> {
        self.file.write_all_at(&encode(end), 0)
    }
}

impl Drop for SyncedMark {
    /// Syncs the file when the segment is closed, so that it survives a power cut.
    fn drop(&mut self) {
        // The records are on disk already. Without the file, a damaged end would at worst be taken for a torn one.
        let _ = self.file.sync_all();
    }
}

impl Synced {
    /// Reads the file of a segment; `None` if there is none, or if a crash of the machine has damaged it.
    pub(super) fn read(folder: &Path, segment: SegmentId) -> io::Result<Option<Self>> {
        let Some(mut file) = if_there(File::open(path_of(segment, folder)))? else { return Ok(None) };
        let live = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        for _ in 0..READS {
            let mut content = Vec::with_capacity(FILE_BYTES);
            file.rewind()?;
            file.by_ref().take(FILE_BYTES as u64).read_to_end(&mut content)?;
            match decode(&content) {
                Some(end) => return Ok(Some(Self { end, live })),
                // Read while it was written.
                None if live => std::thread::yield_now(),
                None => return Ok(None),
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "its synced position cannot be read"))
    }

    /// The segments with synced data, whether they exist or not.
    pub(super) fn list(folder: &Path) -> io::Result<Vec<SegmentId>> {
        let mut segments = Vec::new();
        for name in files::names(folder)? {
            let name = PathBuf::from(name);
            let segment = name.extension().is_some_and(|extension| extension == EXTENSION).then(|| {
                SegmentId::of_file_name(name.with_extension(super::segment_id::EXTENSION).to_str()?)
            });
            if let Some(segment) = segment.flatten()
                && Self::read(folder, segment)?.is_some_and(|synced| synced.end.bytes > 0)
            {
                segments.push(segment);
            }
        }
        Ok(segments)
    }
}

fn encode(end: SegmentEnd) -> [u8; FILE_BYTES] {
    let mut bytes = [0; FILE_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&end.bytes.to_le_bytes());
    bytes[16..20].copy_from_slice(&end.crc.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..20]);
    bytes[20..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn decode(content: &[u8]) -> Option<SegmentEnd> {
    let bytes: &[u8; FILE_BYTES] = content.try_into().ok()?;
    let (said, crc) = bytes.split_last_chunk::<4>()?;
    if said[..8] != MAGIC || u32::from_le_bytes(*crc) != crc32fast::hash(said) {
        return None;
    }
    let (_, numbers) = said.split_first_chunk::<8>()?;
    let (length, crc) = numbers.split_first_chunk::<8>()?;
    Some(SegmentEnd { bytes: u64::from_le_bytes(*length), crc: u32::from_le_bytes(*crc.first_chunk()?) })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_file_tells_whether_its_writer_lives_and_a_spoilt_one_tells_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let segment = SegmentId::first(1);
        let read = || Synced::read(folder.path(), segment).unwrap();
        assert_eq!(read(), None);
        let end = |bytes| SegmentEnd { bytes, crc: 9 };
        let mark = SyncedMark::begin(folder.path(), segment, end(1)).unwrap();
        assert_eq!(read(), Some(Synced { end: end(1), live: true }));
        mark.set(end(u64::MAX)).unwrap();
        drop(mark);
        assert_eq!(read(), Some(Synced { end: end(u64::MAX), live: false }));
        let path = path_of(segment, folder.path());
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut spoilt = whole.clone();
            spoilt[at] ^= 1;
            fs::write(&path, spoilt).unwrap();
            assert_eq!(read(), None);
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(read(), None);
        }
    }
}

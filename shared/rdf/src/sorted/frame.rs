//! A compressed piece of a file with its checksum: u32 length of what is compressed, u32 length before, u32 CRC-32 of what is
//! compressed, then that, by zstd.

use std::io::{self, Write};

use super::SortedError;

/// Length of what stands before the compressed bytes.
pub(super) const HEAD_BYTES: usize = 12;

/// Maximum length of a piece before compression, in bytes. A piece ends after the entry that makes it long enough, and an entry is
/// no longer than the parsers' largest token.
pub(super) const FRAME_BYTES_MAX: usize = 256 << 20;

/// Compression level: the file is written once, and reading takes the same time at every level.
const LEVEL: i32 = 3;

/// Writes a piece; the number of bytes in the file.
pub(super) fn write(out: &mut dyn Write, content: &[u8]) -> io::Result<u64> {
    let compressed = zstd::bulk::compress(content, LEVEL)?;
    let length = |bytes: &[u8]| {
        u32::try_from(bytes.len()).map_err(|_| io::Error::other("a piece of the file would be too long"))
    };
    out.write_all(&length(&compressed)?.to_le_bytes())?;
    out.write_all(&length(content)?.to_le_bytes())?;
    out.write_all(&crc32fast::hash(&compressed).to_le_bytes())?;
    out.write_all(&compressed)?;
    Ok((HEAD_BYTES + compressed.len()) as u64)
}

/// Reads the piece at a place with positioned reads; its content, and the place behind it.
pub(super) fn read(file: &std::fs::File, at: u64) -> Result<(Vec<u8>, u64), SortedError> {
    use std::os::unix::fs::FileExt;
    let mut head = [0; HEAD_BYTES];
    file.read_exact_at(&mut head, at)?;
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (compressed, length, checksum) = (number(0) as usize, number(4) as usize, number(8));
    if compressed.max(length) > FRAME_BYTES_MAX {
        return Err(SortedError::Damaged("a piece of it is too long"));
    }
    let mut bytes = vec![0; compressed];
    file.read_exact_at(&mut bytes, at + HEAD_BYTES as u64)?;
    if crc32fast::hash(&bytes) != checksum {
        return Err(SortedError::Damaged("a checksum does not match"));
    }
    let content = zstd::bulk::decompress(&bytes, length)?;
    if content.len() != length {
        return Err(SortedError::Damaged("a piece of it has another length than it says"));
    }
    Ok((content, at + (HEAD_BYTES + compressed) as u64))
}

//! Triples of any number in one file, sorted by subject, so that all statements about a subject are found with one or two reads.
//! [`SortedWriter`] sorts within a bounded memory, [`SortedTriples`] reads.
//!
//! # The file
//!
//! | part | content |
//! |---|---|
//! | head | the eight bytes of its format, which end with the number of its version |
//! | blocks | each some 64 KiB of lines, compressed by zstd with a checksum |
//! | directory | compressed likewise: a line with the numbers of triples and subjects, then for each block where it begins and its first subject |
//! | foot | u64 where the directory begins, u32 CRC-32 of these bytes (both little-endian), the bytes of the head |
//!
//! A line is a triple: the IRIs of subject and property, and the object as N-Triples write it, with blanks between them. Neither
//! IRIs nor terms in that form have line breaks, and IRIs have no blanks. Lines are sorted, and none comes twice.
//!
//! The foot is written last, so that a file that was cut off has none.

mod merge;
mod reader;
mod writer;

use std::io;

pub use reader::SortedTriples;
pub use writer::SortedWriter;

/// The format and its version, which rises when an older reader would misread a file.
const MAGIC: [u8; 8] = *b"KGTRIPL1";

/// Why a file of sorted triples cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SortedError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is of another version, or was cut off or changed.
    #[error("it is no complete file of sorted triples: {0}")]
    Damaged(&'static str),
}

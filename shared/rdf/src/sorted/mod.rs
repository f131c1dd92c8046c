//! Triples of any number in one file, sorted by subject, so that all statements about a subject are found with one or two reads.
//! [`SortedWriter`] sorts within a bounded memory, [`SortedTriples`] reads.
//!
//! # The file
//! All numbers are little-endian.
//!
//! | part | content |
//! |---|---|
//! | head | the eight bytes `KGTRIPLE`, the version as u32 |
//! | blocks | each a [frame](mod@frame) of some 64 KiB: entries in the order of subject, property and object, none twice |
//! | directory | frames: for every block the u64 where it begins, and its first subject as u32 length and text |
//! | foot | u64 where the directory begins, u64 blocks, u64 triples, u64 subjects, u32 CRC-32 of these 32 bytes, `KGTRIPLE` |
//!
//! An entry is a byte that says whether the subject is the one before (0) or follows (1, then u32 length and text), and the
//! u32 length and the bytes of property, a byte 0, and object. An object is a letter and its parts: `I` and an IRI; `B` and the
//! label of a blank node; `S` and a string; `G`, language, byte 0, text; `D`, datatype, byte 0, text.
//!
//! The foot is written last, so that a file that was cut off has none.

mod frame;
mod merge;
mod object;
mod reader;
mod writer;

use std::io;

pub use object::StoredObject;
pub use reader::SortedTriples;
pub use writer::SortedWriter;

const MAGIC: [u8; 8] = *b"KGTRIPLE";

/// Rises when an older reader would misread a file.
const VERSION: u32 = 1;

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

//! Damaged places of a log.

use std::fmt;
use std::path::PathBuf;

/// A damaged place of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The segment.
    pub path: PathBuf,
    /// Where the damage starts, in bytes.
    pub offset: u64,
    pub kind: DamageKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// A segment ends as after a crash, within a frame or in zeros, behind everything known to be synced; or it goes on behind the
    /// end that a later epoch fixed. Nothing acknowledged is lost.
    TornTail {
        /// Length of the torn part.
        bytes: u64,
    },
    /// Bytes that are not an intact frame and not the result of a crash: acknowledged entries may be lost.
    Corrupt {
        /// Length of the corrupt part.
        bytes: u64,
    },
    /// An intact frame that the run's key does not open: it was encrypted with another key, or moved from its
    /// original position.
    Foreign {
        /// Length of the frame.
        bytes: u64,
    },
    /// An intact frame with an invalid line.
    BadEntry {
        /// Line within the frame, from 0.
        line: u32,
        /// Why.
        message: String,
    },
    /// The segment ends here, but was known to be longer: acknowledged entries are lost.
    Cut {
        /// How many bytes are missing.
        bytes: u64,
    },
    /// The intact frame that ends or continues here is not the one that was acknowledged at this position.
    Altered,
    /// The ends of earlier epochs cannot be read: what was never acknowledged may count.
    BadEnds,
    /// Segments of an epoch are missing: this one and perhaps its successors.
    MissingSegments {
        /// How many.
        count: u32,
    },
}

impl Damage {
    /// Whether acknowledged entries may be lost here.
    pub fn is_loss(&self) -> bool {
        !matches!(self.kind, DamageKind::TornTail { .. })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, offset) = (self.path.display(), self.offset);
        match &self.kind {
            DamageKind::TornTail { bytes } => {
                write!(f, "{path}: torn at byte {offset} ({bytes} bytes that were never acknowledged)")
            }
            DamageKind::Corrupt { bytes } => write!(f, "{path}: {bytes} corrupt bytes at byte {offset}"),
            DamageKind::Foreign { bytes } => {
                write!(
                    f,
                    "{path}: {bytes} bytes at byte {offset}, encrypted with another key or for another place"
                )
            }
            DamageKind::BadEntry { line, message } => {
                write!(f, "{path}: line {line} of the frame at byte {offset}: {message}")
            }
            DamageKind::Cut { bytes } => {
                write!(
                    f,
                    "{path}: ends at byte {offset}; {bytes} bytes that were acknowledged are missing behind"
                )
            }
            DamageKind::Altered => {
                write!(
                    f,
                    "{path}: the frame that ends at byte {offset} is not the one that was acknowledged there"
                )
            }
            DamageKind::BadEnds => write!(f, "{path}: the ends of earlier epochs cannot be read"),
            DamageKind::MissingSegments { count: 1 } => write!(f, "{path}: the segment is missing"),
            DamageKind::MissingSegments { count } => {
                write!(f, "{path}: {count} segments are missing from this one on")
            }
        }
    }
}

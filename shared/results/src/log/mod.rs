//! The record log: the durable store of a run.
//!
//! **Content.** One entry per attempt that ended a dialogue: the record with prompts, answers, verdict and
//! provenance, and its commit ticket. Entries are JSON lines ([`envelope`]), grouped into frames ([`frame`]),
//! appended to segment files of one folder. Several writers may append at the same time, each to its own segments
//! ([`segment_id`]); together they form one log.
//!
//! **Durability.** An entry is acknowledged after its frame is synced to disk; one sync serves all waiting entries
//! ([`writer`], [`commit_queue`]). A failed sync ends the writer, because the state of the disk is then unknown, and
//! a second sync may report a false success.
//!
//! **Losses.** Nothing may be dropped. Beside each segment, its writer stores how far it has synced ([`synced`]), and
//! a finished run stores where its segments end ([`seal`]). A segment that ends earlier is damaged. A torn tail
//! behind these positions was never acknowledged; it is reported and left in place, and a continuing writer begins a
//! new segment.
//!
//! **Versions.** Version 1 is the first. A reader ignores unknown fields, and refuses a newer major version instead of
//! guessing. Frames of runs on protected exercises are encrypted ([`cipher`]);
//! checksums can be checked without the key, everything else needs it.
//!
//! **Readers.** [`reader`] reads everything, [`tail`] everything since the last read, both as whole records;
//! [`places`] reads entries in any order, [`ordered`] the winners in a chosen one; each as whole records or as
//! [summaries](crate::Summary).
//!
//! **Winners.** A key may have several records; [`winner`] decides which one counts, for every reader. Records that
//! arrive after a run has finished do not change that.

pub mod cipher;
pub mod commit_queue;
pub mod damage;
pub mod envelope;
pub mod error;
pub mod frame;
pub mod lines;
pub mod ordered;
pub mod places;
pub mod reader;
pub mod seal;
pub mod segment;
pub mod segment_id;
pub mod synced;
pub mod tail;
#[cfg(test)]
mod tests;
pub mod verify;
pub mod winner;
pub mod writer;

pub use cipher::LogCipher;
pub use commit_queue::{CommitError, CommitQueue, CommitThread};
pub use damage::{Damage, DamageKind};
pub use envelope::{LogEntry, Parsed};
pub use error::LogError;
pub use lines::{EntryLocation, FrameLines, Line};
pub use ordered::{Ordered, PARTS_AT_ONCE, RECORDS_AT_ONCE};
pub use places::PlaceReader;
pub use reader::{LogItem, LogReader};
pub use seal::{Ends, SealEvent, Seals};
pub use segment_id::{SegmentId, WriterId};
pub use synced::{Position, SegmentEnd};
pub use tail::{LogTail, TailPart};
pub use verify::{VerifyReport, verify};
pub use winner::{WinnerIndex, WinnerRank};
pub use writer::{LogOptions, LogWriter, Recovery};

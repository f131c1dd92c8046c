//! The record log: the durable store of a run.
//!
//! **Content.** One line per attempt that ended a dialogue: the record with prompts, answers, verdict and provenance; and one per
//! event, which says what happened to the run. Lines are JSON ([`envelope`]), grouped into frames ([`frame`]), appended to
//! segment files of one folder.
//!
//! **One writer.** Whoever writes claims the next epoch and fixes how much of the earlier ones counts ([`epochs`]). A writer
//! that was followed acknowledges nothing any more.
//!
//! **Durability.** A line is acknowledged after its frame is synced to disk and the claim was checked; one sync serves all
//! waiting lines ([`writer`], [`commit_queue`]). A failed sync ends the writer, because the state of the disk is then unknown,
//! and a second sync may report a false success.
//!
//! **Losses.** Nothing may be dropped. Beside each segment, its writer stores how far it has synced ([`synced`]), and the next
//! writer where it ends. A segment that ends earlier is damaged. What is behind was never acknowledged; it is reported and left
//! in place.
//!
//! **Versions.** Version 1 is the first. A reader ignores unknown fields, and refuses a newer major version instead of
//! guessing. Frames of runs on protected exercises are encrypted ([`cipher`]);
//! checksums can be checked without the key, everything else needs it.
//!
//! **Readers.** [`reader`] reads everything, or everything since a position; [`places`] reads records in any order, [`ordered`]
//! the winners in a chosen one; each as whole records or as [summaries](crate::Summary).
//!
//! **Winners.** A key may have several records; [`winner`] decides which one counts, for every reader.

pub mod cipher;
pub mod commit_queue;
pub mod damage;
pub mod envelope;
pub mod epochs;
pub mod error;
pub mod frame;
pub mod lines;
pub mod ordered;
pub mod places;
pub mod reader;
pub mod segment;
pub mod segment_id;
pub mod synced;
#[cfg(test)]
mod tests;
pub mod verify;
pub mod winner;
pub mod writer;

pub use cipher::LogCipher;
pub use commit_queue::{CommitError, CommitQueue, CommitThread};
pub use damage::{Damage, DamageKind};
pub use envelope::{LogLine, Parsed};
pub use epochs::{Claim, Ends};
pub use error::LogError;
pub use lines::{EntryLocation, FrameLines, Line};
pub use ordered::{Ordered, PARTS_AT_ONCE, RECORDS_AT_ONCE};
pub use places::PlaceReader;
pub use reader::{LogItem, LogReader, ReadPosition};
pub use segment_id::SegmentId;
pub use synced::SegmentEnd;
pub use verify::{VerifyReport, verify};
pub use winner::{WinnerIndex, WinnerRank};
pub use writer::{LogOmission, LogOptions, LogWriter};

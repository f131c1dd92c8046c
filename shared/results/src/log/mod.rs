//! The record log: the durable memory of a run.
//!
//! **What is written.** One entry per attempt that ended a dialogue: the record with prompts, answers, verdict
//! and provenance, and the commit ticket that orders it. Entries are JSON lines ([`envelope`]), grouped into
//! frames ([`frame`]), appended to segment files of one folder. Several writers may append at the same time, each to
//! segments of its own ([`segment_id`]); one log is all of them together.
//!
//! **What durable means.** An entry is acknowledged after the frame that holds it was synced to disk; one sync
//! serves all entries that were waiting ([`writer`], [`commit_queue`]). A failed sync ends the writer: the state of the
//! disk is then unknown, and asking again may lie.
//!
//! **What may be dropped.** Nothing. Beside each segment its writer says how far it has synced ([`synced`]), and a run
//! that finishes says where its segments end ([`seal`]). What ends before is damaged. What is torn behind was never
//! acknowledged; it is reported and left where it is: a writer that goes on begins a new segment.
//!
//! **Who can read what.** Version 1 is the first. A reader takes entries of its own major version and older,
//! ignores fields it does not know, and refuses a newer major version instead of guessing. A frozen log of every
//! released version lies in `testdata/` and is replayed by the tests. Frames of runs on protected exercises are encrypted
//! ([`cipher`]); checksums are checked without the key, everything else needs it.
//!
//! **Who reads how.** [`reader`] reads everything there is, [`tail`] what has come since it was asked before, and both give
//! whole records; [`places`] reads entries in any order, [`ordered`] those that count in a chosen one. [`head`] is the part of them that counting needs.
//!
//! **Which record counts.** A key may have several records; [`winner`] says which one every reader takes. What comes after
//! a run has finished does not change that.

pub mod cipher;
pub mod commit_queue;
pub mod damage;
pub mod envelope;
pub mod error;
pub mod frame;
pub mod head;
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
pub use commit_queue::{CommitError, CommitPolicy, CommitQueue, CommitThread};
pub use damage::{Damage, DamageKind};
pub use envelope::{LogEntry, Parsed};
pub use error::LogError;
pub use head::{OutcomeHead, RecordHead};
pub use lines::{FrameLines, Line, Location};
pub use ordered::Ordered;
pub use places::PlaceReader;
pub use reader::{LogItem, LogReader};
pub use seal::{Ends, SealEvent, Seals};
pub use segment_id::{SegmentId, WriterId};
pub use synced::SegmentEnd;
pub use tail::{LogTail, TailPart};
pub use verify::{VerifyReport, verify};
pub use winner::{Rank, WinnerIndex};
pub use writer::{LogOptions, LogWriter, Position, Recovery};

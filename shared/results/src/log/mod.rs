//! The record log: the durable memory of a run.
//!
//! **What is written.** One entry per attempt that ended a dialogue: the record with prompts, answers, verdict
//! and provenance, and the commit ticket that orders it. Entries are JSON lines ([`envelope`]), grouped into
//! frames ([`frame`]), appended to segment files `00000001.kglog`, `00000002.kglog`, … of one folder.
//!
//! **What durable means.** An entry is acknowledged after the frame that holds it was synced to disk; one sync
//! serves all entries that were waiting ([`writer`], [`commit_queue`]). A failed sync ends the writer: the state of the
//! disk is then unknown, and asking again may lie.
//!
//! **What may be dropped.** Nothing that was acknowledged. What a crash tore off the end was never
//! acknowledged; it is cut when the log is opened for writing, and reported.
//!
//! **Who can read what.** Version 1 is the first. A reader takes entries of its own major version and older,
//! ignores fields it does not know, and refuses a newer major version instead of guessing. A frozen log of every
//! released version lies in `testdata/` and is replayed by the tests. Frames of runs on protected exercises are encrypted
//! ([`cipher`]); checksums are checked without the key, everything else needs it.
//!
//! **Which record counts.** A key may have several records; [`winner`] says which one every reader takes.

pub mod cipher;
pub mod commit_queue;
pub mod envelope;
pub mod error;
pub mod frame;
pub mod reader;
pub mod segment;
#[cfg(test)]
mod tests;
pub mod verify;
pub mod winner;
pub mod writer;

pub use cipher::LogCipher;
pub use commit_queue::{CommitError, CommitQueue, CommitThread};
pub use envelope::LogEntry;
pub use error::LogError;
pub use reader::{Damage, DamageKind, Location, LogItem, LogReader};
pub use verify::{VerifyReport, verify};
pub use winner::WinnerIndex;
pub use writer::{LogOptions, LogWriter, Recovery};

//! Errors of a log as a whole. Damage inside it is not an error but part of what readers return:
//! [`Damage`](super::Damage).

use std::path::PathBuf;

use crate::files::IoError;

/// Why a log cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The operating system reported an error.
    #[error(transparent)]
    Io(#[from] IoError),
    /// No space is left, or the quota is used up. Nothing of the group was acknowledged; the log is as before the
    /// group, and the same entries may be appended again once there is space.
    #[error("{}: the disk is full", path.display())]
    DiskFull {
        /// The segment.
        path: PathBuf,
    },
    /// A sync failed, now or earlier. It is unknown how much of the last group is on disk; reopen the log.
    #[error("{}: the log stopped after a failed sync: {message}", path.display())]
    Stopped {
        /// The segment.
        path: PathBuf,
        /// What the operating system said.
        message: String,
    },
    /// An entry exceeds the size limit.
    #[error("the record of {key} is {bytes} bytes long, the limit is {limit}")]
    EntryTooLong {
        /// The dialogue.
        key: String,
        /// Length of its JSON.
        bytes: usize,
        limit: usize,
    },
    /// A record given as JSON does not fit into a line.
    #[error("the record of {key} is not a JSON object without line feeds and other control characters")]
    NotALine {
        /// The dialogue.
        key: String,
    },
    /// Another writer has claimed a later epoch of the log, or the log was removed: nothing more may be acknowledged here.
    #[error("{}: somebody else writes this log since, or it was removed", path.display())]
    Followed {
        /// The claim.
        path: PathBuf,
    },
    /// A record that cannot be serialised.
    #[error("the record of {key} cannot be written as JSON: {source}")]
    Encode {
        /// The dialogue.
        key: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The log holds encrypted frames, and no key was given.
    #[error("{}: the records are encrypted, as the run holds protected exercises; unwrap their key, `log_key` in the run's manifest.json, with the identity that is published with kgfleet", path.display())]
    KeyNeeded {
        /// The segment.
        path: PathBuf,
    },
    /// Written by a later kgfleet.
    #[error("{}: format version {found} is newer than {supported}, the newest this kgfleet reads", path.display())]
    Newer {
        /// The segment.
        path: PathBuf,
        /// Version found.
        found: u32,
        /// Newest version known here.
        supported: u32,
    },
}

//! What can be wrong with a result file, and with one record of it. The two are apart because a bad record
//! spoils only itself: reading goes on behind it.

use std::io;

/// A file, or a member of an archive, that cannot be read (further).
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct FileError {
    /// Path of the file; for a member of an archive, `archive.zip!member.json`.
    pub file: String,
    /// What is wrong.
    #[source]
    pub problem: FileProblem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// The operating system refuses; not found, no permission, a broken disk.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
    /// Named `.zip`, but no zip archive.
    #[error("is not a zip archive")]
    NotAnArchive,
    /// Starts like a zip archive, but is cut off or damaged.
    #[error("is a damaged or truncated zip archive: {0}")]
    DamagedArchive(String),
    /// Uses a feature of zip that is not supported.
    #[error("is a zip archive of an unsupported kind: {0}")]
    UnsupportedArchive(String),
    /// Encrypted, and no password was given.
    #[error("is encrypted: a password is needed")]
    PasswordNeeded,
    /// Encrypted with another password.
    #[error("cannot be decrypted: the password is wrong")]
    WrongPassword,
    /// An archive or a folder that was named and holds no result file.
    #[error("holds no result file (*_result*.json)")]
    NoResultFile,
    /// Folders nested deeper than the limit: most likely a link that leads back.
    #[error("folders are nested deeper than {limit} levels")]
    NestedTooDeep {
        /// Levels allowed.
        limit: usize,
    },
    /// Valid or not, this is no list of records.
    #[error("is not a JSON list of records: byte {offset} is {found}, `[` is expected")]
    NotAList {
        /// Where, in bytes from 0.
        offset: u64,
        /// The byte found, or "the end".
        found: String,
    },
    /// The text ends in the middle of the list. The records before the tear were read.
    #[error("is truncated: it ends at byte {offset} inside the list, after {records} complete records")]
    Truncated {
        /// Length of the text in bytes.
        offset: u64,
        /// Elements that were complete.
        records: usize,
    },
    /// There is more after the end of the list. The records of the list were read.
    #[error("has text after the end of the list, at byte {offset}")]
    TrailingText {
        /// Where, in bytes from 0.
        offset: u64,
    },
}

/// One record that cannot be used. The records around it are not touched by this.
#[derive(Debug, thiserror::Error)]
#[error("{file}: record {index}: {problem}")]
pub struct RecordError {
    /// The file, as in [`FileError::file`].
    pub file: String,
    /// Position in the list, from 0.
    pub index: usize,
    /// What is wrong.
    #[source]
    pub problem: RecordProblem,
}

/// What is wrong with a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordProblem {
    /// Not JSON.
    #[error("is not valid JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// Longer than [`MAX_RECORD_BYTES`](super::source::MAX_RECORD_BYTES); it was skipped without being held.
    #[error("is {bytes} bytes long, the limit is {limit}")]
    TooLong {
        /// Its length in the file.
        bytes: u64,
        limit: usize,
    },
    /// A field that every version has is missing or has another type.
    #[error("`{field}` is missing or is not {expected}")]
    Field {
        /// Path of the field, such as `taskInfo.taskId`.
        field: String,
        /// What it should be.
        expected: &'static str,
    },
}

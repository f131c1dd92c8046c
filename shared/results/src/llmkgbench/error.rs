//! Errors of result files and of single records. They are separate because after a bad record, reading continues.

use std::io;

/// A file, or a file in an archive, that cannot be read (further).
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct FileError {
    /// Path of the file; for one in an archive, `archive.zip!member.json`.
    pub file: String,
    /// What is wrong.
    #[source]
    pub problem: FileProblem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// An error of the operating system: not found, no permission, a broken disk.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Named `.zip`, but not a zip archive.
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
    /// Encrypted, and the data does not match its authentication code: the two bytes by which a password is checked before fit one
    /// wrong password of 65 536.
    #[error("cannot be decrypted: the password is wrong, or the archive is damaged: {0}")]
    Undecryptable(String),
    /// An archive or folder without a result file.
    #[error("contains no result file (*_result*.json)")]
    NoResultFile,
    /// Folders nested deeper than the limit: most likely a link to a parent folder.
    #[error("folders are nested deeper than {limit} levels")]
    NestedTooDeep {
        /// Maximum number of levels.
        limit: usize,
    },
    /// The text does not begin like a list.
    #[error("is not a JSON list of records: byte {offset} is {found}, `[` is expected")]
    NotAList {
        /// Where, in bytes from 0.
        offset: u64,
        /// The byte found, or "the end".
        found: String,
    },
    /// The text ends within the list. The complete records before the end were read.
    #[error("is truncated: it ends at byte {offset} inside the list, after {records} complete records")]
    Truncated {
        /// Length of the text in bytes.
        offset: u64,
        /// Complete elements.
        records: usize,
    },
    /// More records than this cannot be read. What came before was read.
    #[error("has more than {limit} unreadable records; the rest of it was not read")]
    TooManyUnreadable { limit: usize },
    /// Text follows the end of the list. The records of the list were read.
    #[error("has text after the end of the list, at byte {offset}")]
    TrailingText {
        /// Where, in bytes from 0.
        offset: u64,
    },
}

/// A record that cannot be used. It does not affect other records.
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
    /// Longer than [`RECORD_BYTES_MAX`](super::source::RECORD_BYTES_MAX); it was skipped.
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
        /// The expected type.
        expected: &'static str,
    },
}

//! Errors of packs. Every message names the pack, and the entry if there is one.

use std::io::ErrorKind;

use tasks::task::TaskError;

/// Why a pack cannot be opened, sealed or used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file or directory cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no zip archive.
    #[error("{pack}: not a sealed pack (a zip archive was expected)")]
    NotSealed { pack: String },
    #[error("{pack}: the pack is sealed with another password")]
    WrongPassword { pack: String },
    /// Bytes are missing or were changed after sealing.
    #[error("{pack}: the file is damaged or incomplete: {message}")]
    Damaged { pack: String, message: String },
    /// The content is larger than any pack should be.
    #[error("{pack}: the content is larger than the {limit_bytes} bytes allowed")]
    TooLarge { pack: String, limit_bytes: u64 },
    /// A newer kgfleet wrote the pack.
    #[error(
        "{pack}: the pack has format version {found}, this kgfleet reads up to version {known}; please update it"
    )]
    Newer {
        pack: String,
        /// Version of the file.
        found: u64,
        /// Newest version known here.
        known: u64,
    },
    #[error("{pack}: the entry `{entry}` is missing")]
    MissingEntry {
        pack: String,
        /// The entry's path.
        entry: String,
    },
    /// An entry is not in the manifest.
    #[error("{pack}: the manifest does not list the entry `{entry}`")]
    UnlistedEntry {
        pack: String,
        /// The entry's path.
        entry: String,
    },
    /// An entry differs from the manifest.
    #[error("{pack}: the entry `{entry}` does not have the SHA-256 that the manifest states")]
    HashMismatch {
        pack: String,
        /// The entry's path.
        entry: String,
    },
    /// A path could leave the directory it is unpacked to, or is not valid on every file system.
    #[error(
        "{pack}: `{entry}` is not a valid entry path (lower levels separated by `/`, letters, digits and `._-`)"
    )]
    BadPath {
        pack: String,
        /// The entry's path.
        entry: String,
    },
    /// An entry is invalid.
    #[error("{pack}: the entry `{entry}` is not valid: {message}")]
    Invalid {
        pack: String,
        /// The entry's path.
        entry: String,
        /// Why.
        message: String,
    },
    /// A task of the pack cannot be used.
    #[error("{pack}: {source}")]
    Task {
        pack: String,
        /// Which task and case, and why.
        source: Box<TaskError>,
    },
    /// No case has this identifier.
    #[error("{pack}: there is no case `{wanted}`{hint}")]
    UnknownCase {
        pack: String,
        /// The requested case.
        wanted: String,
        /// A hint if the name is ambiguous or similar to another; otherwise empty.
        hint: String,
    },
}

impl PackError {
    /// What a user can do about it, if the message does not say.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Io { source, .. } => match source.kind() {
                ErrorKind::NotFound => Some("give the path of a pack file, or `core` for the built-in pack"),
                ErrorKind::IsADirectory => Some("make a pack file of the folder with `kgfleet pack seal`"),
                _ => None,
            },
            Self::WrongPassword { .. } => Some(
                "the commands of `kgfleet pack` take it with --pack-password; for all others, unseal it and seal it with the published one",
            ),
            _ => None,
        }
    }
}

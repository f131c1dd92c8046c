//! What can be wrong with a pack. Every message names the pack, and the entry where there is one.

use tasks::task::TaskError;

/// A pack cannot be opened, sealed or used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file or directory cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Which one.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no age file, or of an age version that is not known.
    #[error("{pack}: not a sealed pack (an age file was expected)")]
    NotSealed { pack: String },
    /// The identity does not open this file. A damaged key stanza looks the same.
    #[error("{pack}: the identity given does not open this pack")]
    WrongIdentity { pack: String },
    /// Bytes are missing or were changed after sealing.
    #[error("{pack}: the file is damaged or incomplete: {message}")]
    Damaged {
        pack: String,
        /// What does not fit.
        message: String,
    },
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
    /// An entry that should be there is not.
    #[error("{pack}: the entry `{entry}` is missing")]
    MissingEntry {
        pack: String,
        /// The entry's path.
        entry: String,
    },
    /// An entry that the manifest does not list.
    #[error("{pack}: the manifest does not list the entry `{entry}`")]
    UnlistedEntry {
        pack: String,
        /// The entry's path.
        entry: String,
    },
    /// An entry is not the one that the manifest describes.
    #[error("{pack}: the entry `{entry}` does not have the SHA-256 that the manifest states")]
    HashMismatch {
        pack: String,
        /// The entry's path.
        entry: String,
    },
    /// A path that could leave the directory it is unpacked to, or that not every file system can hold.
    #[error(
        "{pack}: `{entry}` is no acceptable entry path (lower levels separated by `/`, letters, digits and `._-`)"
    )]
    BadPath {
        pack: String,
        /// The entry's path.
        entry: String,
    },
    /// An entry does not have the form that it should have.
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
        /// What was asked for.
        wanted: String,
        /// Where the name could be meant differently; empty if nothing is near.
        hint: String,
    },
}

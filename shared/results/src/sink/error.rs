//! What can go wrong with a sink.

use std::io;
use std::path::PathBuf;

use domain::{ErrorCode, ServiceError};

use crate::log::LogError;
use crate::manifest::ManifestError;
use crate::run_dir::RunDirError;

/// Something of a sink that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// There is a run of this name already.
    #[error("{place}: the run exists already")]
    Exists {
        /// Where it lies.
        place: String,
    },
    /// There is no run of this name.
    #[error("{place}: there is no such run")]
    NoRun {
        /// Where it would lie.
        place: String,
    },
    /// The folder of a run, or its manifest.
    #[error(transparent)]
    Run(RunDirError),
    /// The record log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The operating system refuses.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The object store refuses.
    #[error("{place}: cannot {doing}: {source}")]
    Store {
        /// The object, or the prefix.
        place: String,
        /// What was tried.
        doing: &'static str,
        /// Why not.
        #[source]
        source: object_store::Error,
    },
    /// A JSON file that does not hold what it should.
    #[error("{place}: {source}")]
    Json {
        /// The file or object.
        place: String,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The address of an object store cannot be used.
    #[error(
        "`{url}` is no object store: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `file:///FOLDER` was expected"
    )]
    Url {
        /// The address.
        url: String,
    },
    /// The object store overwrites what is to be made only if it is not there.
    #[error(
        "{place}: the store ignores `If-None-Match: *` on writing, which two coordinators need to make a run once"
    )]
    NoConditions {
        /// The store.
        place: String,
    },
    /// Objects cannot be continued, and no lock keeps other processes from them.
    #[error("{place}: the log of an object store needs writers with random numbers")]
    NoLock {
        /// The run.
        place: String,
    },
    /// A pack is named by the hash of its manifest.
    #[error("`{0}` is no hash of a pack: 64 hexadecimal digits were expected")]
    PackHash(String),
    /// The process is ending.
    #[error("the call was given up because the process ends")]
    Ended,
}

impl SinkError {
    pub(super) fn io(path: impl Into<PathBuf>, doing: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.into(), doing, source }
    }

    /// What a caller can do about it.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Exists { .. } | Self::Log(LogError::Taken { .. }) => ErrorCode::Conflict,
            Self::NoRun { .. } => ErrorCode::NotFound,
            Self::Run(RunDirError::Busy { .. }) => ErrorCode::Conflict,
            Self::Run(RunDirError::Name(_)) | Self::PackHash(_) | Self::Url { .. } => ErrorCode::Invalid,
            Self::Run(RunDirError::Io { source, .. })
            | Self::Run(RunDirError::Manifest(ManifestError::Io { source, .. }))
            | Self::Log(LogError::Io { source, .. })
            | Self::Io { source, .. } => io_code(source),
            Self::Log(LogError::DiskFull { .. }) => ErrorCode::Full,
            Self::Log(LogError::Unavailable { .. }) | Self::Ended => ErrorCode::Unavailable,
            Self::Store { source, .. } => store_code(source),
            Self::Run(_)
            | Self::Log(_)
            | Self::Json { .. }
            | Self::NoConditions { .. }
            | Self::NoLock { .. } => ErrorCode::Internal,
        }
    }
}

fn io_code(error: &io::Error) -> ErrorCode {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorCode::Full,
        _ => ErrorCode::Unavailable,
    }
}

fn store_code(error: &object_store::Error) -> ErrorCode {
    match error {
        object_store::Error::AlreadyExists { .. } => ErrorCode::Conflict,
        object_store::Error::InvalidPath { .. } | object_store::Error::UnknownConfigurationKey { .. } => {
            ErrorCode::Invalid
        }
        object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => {
            ErrorCode::Internal
        }
        // Also where the bucket is missing or access denied: that can be mended, and nothing is lost by trying again.
        _ => ErrorCode::Unavailable,
    }
}

impl From<RunDirError> for SinkError {
    fn from(error: RunDirError) -> Self {
        match error {
            RunDirError::Exists { path } => Self::Exists { place: path.display().to_string() },
            RunDirError::Manifest(ManifestError::Io { path, source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Self::NoRun { place: path.parent().unwrap_or(&path).display().to_string() }
            }
            other => Self::Run(other),
        }
    }
}

impl From<SinkError> for ServiceError {
    fn from(error: SinkError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

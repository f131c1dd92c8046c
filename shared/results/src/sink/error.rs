//! Errors of sinks.

use std::io;

use domain::{ErrorCode, ServiceError};

use crate::files::IoError;
use crate::log::LogError;
use crate::manifest::ManifestError;
use crate::run_dir::RunDirError;

/// Why a sink cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// A run of this name exists already.
    #[error("{place}: the run exists already")]
    Exists { place: String },
    /// There is no run of this name.
    #[error("{place}: there is no such run")]
    NoRun { place: String },
    /// An error of a run's folder or manifest.
    #[error(transparent)]
    Run(RunDirError),
    /// An error of the record log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A JSON file with unexpected content.
    #[error("{place}: {source}")]
    Json {
        /// The file.
        place: String,
        #[source]
        source: serde_json::Error,
    },
    /// A pack is named by the hash of its manifest.
    #[error("`{0}` is not the hash of a pack: expected 64 hexadecimal digits")]
    PackHash(String),
    /// The process is ending.
    #[error("the call was given up because the process ends")]
    Ended,
}

impl SinkError {
    /// The code that tells a caller what to do.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Exists { .. } => ErrorCode::Conflict,
            Self::NoRun { .. } => ErrorCode::NotFound,
            Self::Run(RunDirError::Busy { .. } | RunDirError::Manifest(ManifestError::Altered { .. })) => {
                ErrorCode::Conflict
            }
            Self::Run(RunDirError::Name(_)) | Self::PackHash(_) => ErrorCode::Invalid,
            Self::Run(RunDirError::Io(error) | RunDirError::Manifest(ManifestError::Io(error)))
            | Self::Log(LogError::Io(error))
            | Self::Io(error) => io_code(&error.source),
            Self::Log(LogError::DiskFull { .. }) => ErrorCode::Full,
            Self::Ended | Self::Log(LogError::Followed { .. }) => ErrorCode::Unavailable,
            Self::Run(_) | Self::Log(_) | Self::Json { .. } => ErrorCode::Internal,
        }
    }
}

fn io_code(error: &io::Error) -> ErrorCode {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorCode::Full,
        _ => ErrorCode::Unavailable,
    }
}

impl From<RunDirError> for SinkError {
    fn from(error: RunDirError) -> Self {
        match error {
            RunDirError::Exists { path } => Self::Exists { place: path.display().to_string() },
            RunDirError::Manifest(ManifestError::Io(IoError { path, source, .. }))
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

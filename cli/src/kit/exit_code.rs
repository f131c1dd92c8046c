//! The exit codes of `kgfleet`, documented in `docs/exit-codes.md`.

use domain::{ErrorCode, ServiceError};

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Success.
    Success = 0,
    /// The command ran, but the result is not the demanded one: dialogues failed, agreement is below the bound, a check found
    /// something.
    Unsatisfied = 1,
    /// Invalid command line or configuration; nothing was started.
    Usage = 2,
    /// An external failure: files, servers, disks. Results so far are kept.
    Infrastructure = 3,
    /// Some input could not be used; the rest was processed.
    BadInput = 4,
    /// Interrupted by the user; `kgfleet resume` continues.
    Interrupted = 130,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

/// An error with its exit code. Commands return `anyhow::Error`; without an exit code, an error means
/// [`ExitCode::Infrastructure`].
#[derive(Debug, thiserror::Error)]
#[error("{}", crate::kit::output::explain(error))]
pub struct Exit {
    pub code: ExitCode,
    pub error: anyhow::Error,
}

impl Exit {
    /// A mistake on the command line or in a configuration.
    pub fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
        Self { code: ExitCode::Usage, error: error.into() }.into()
    }
}

/// The error of a coordinator, with an exit code for its kind.
pub fn explained(error: ServiceError) -> anyhow::Error {
    let code = match error.code {
        ErrorCode::Invalid | ErrorCode::NotFound | ErrorCode::Conflict | ErrorCode::Incompatible => {
            ExitCode::Usage
        }
        ErrorCode::Denied | ErrorCode::Full | ErrorCode::Unavailable | ErrorCode::Internal => {
            ExitCode::Infrastructure
        }
    };
    Exit { code, error: error.into() }.into()
}

/// Makes an error about the command line or a configuration, with arguments as for `anyhow!`.
macro_rules! usage {
    ($($words:tt)*) => { $crate::kit::exit_code::Exit::usage(anyhow::anyhow!($($words)*)) };
}
pub(crate) use usage;

/// The exit code of an error.
pub fn code_of(error: &anyhow::Error) -> ExitCode {
    error.downcast_ref::<Exit>().map_or(ExitCode::Infrastructure, |exit| exit.code)
}

//! The exit codes of `kgfleet`, documented in `docs/exit-codes.md`.

use domain::{ErrorCode, ServiceError};

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// Success.
    Success,
    /// The command ran, but the result is not the demanded one: dialogues failed, agreement is below the bound, a check found
    /// something.
    Unsatisfied,
    /// Invalid command line or configuration; nothing was started.
    Usage,
    /// An external failure: files, servers, disks. Results so far are kept.
    Infrastructure,
    /// Some input could not be used; the rest was processed.
    BadInput,
    /// Another coordinator leads since.
    Followed,
    /// A worker has no work now, but there may be later; the number is its own choice.
    Later(u8),
    /// Interrupted by the user; `kgfleet resume` continues.
    Interrupted,
    /// Ended by SIGTERM before its work was done.
    Terminated,
}

impl ExitCode {
    /// What the shell sees.
    pub fn number(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Unsatisfied => 1,
            Self::Usage => 2,
            Self::Infrastructure => 3,
            Self::BadInput => 4,
            Self::Followed => 5,
            Self::Later(number) => number,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
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

//! The exit codes of `kgfleet`, documented in `docs/exit-codes.md`.

/// What a command ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Everything asked for was done.
    Success = 0,
    /// It was done, and the result is not what was demanded: dialogues failed, agreement is below the bound, a
    /// check found something.
    Unsatisfied = 1,
    /// The command line or a configuration cannot be used; nothing was started.
    Usage = 2,
    /// The world failed: files, servers, disks. What was done until then is kept.
    Infrastructure = 3,
    /// Some input could not be used; the rest was processed.
    BadInput = 4,
    /// Interrupted by hand; `kgfleet resume` goes on.
    Interrupted = 130,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

/// An error with the exit code it leads to. Commands return `anyhow::Error`; where nothing else is said, a failure
/// counts as [`ExitCode::Infrastructure`].
#[derive(Debug, thiserror::Error)]
#[error("{}", crate::output::explain(error))]
pub struct Exit {
    pub code: ExitCode,
    /// What to tell.
    pub error: anyhow::Error,
}

impl Exit {
    /// A mistake on the command line or in a configuration.
    pub fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
        Self { code: ExitCode::Usage, error: error.into() }.into()
    }
}

/// The code that an error leads to.
pub fn code_of(error: &anyhow::Error) -> ExitCode {
    error.downcast_ref::<Exit>().map_or(ExitCode::Infrastructure, |exit| exit.code)
}

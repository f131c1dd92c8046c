//! `kgfleet retry`.

use domain::FailureCause;

use crate::engine::start::GoingOn;
use crate::kit::exit_code::ExitCode;

/// Ask failed dialogues of a run again, on this machine or in a fleet.
///
/// A scored record replaces a failed one, never the other way round. Exit codes as for `kgfleet run`; in a
/// fleet 0 if the dialogues are queued.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: GoingOn,
    /// Only failures with this cause; repeatable. Default: all.
    #[arg(long = "cause", value_name = "CAUSE")]
    causes: Vec<FailureCause>,
}

/// `kgfleet retry`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    arguments.of.go_on(Some(arguments.causes))
}

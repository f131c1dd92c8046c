//! `kgfleet resume`.

use crate::engine::start::GoingOn;
use crate::kit::exit_code::ExitCode;

/// Continue an interrupted run, on this machine or in a fleet.
///
/// Dialogues with a durable record are not asked again. A run that you did not start on this machine contacts nothing and
/// reads no key unless --trust-endpoints is given. Exit codes as for `kgfleet run`; in a fleet 0 if the run
/// continues.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: GoingOn,
}

/// `kgfleet resume`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    arguments.of.go_on(None)
}

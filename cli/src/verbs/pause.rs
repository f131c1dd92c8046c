//! `kgfleet pause`.

use domain::control::BenchmarkCommand;

use crate::engine::steer::Steered;
use crate::kit::exit_code::ExitCode;

/// Stop handing out work of a run; leased work continues.
///
/// `kgfleet resume RUN` continues it. A process of this machine that works at a run is stopped by Ctrl-C.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: Steered,
}

/// `kgfleet pause`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    arguments.of.command(BenchmarkCommand::Pause)
}

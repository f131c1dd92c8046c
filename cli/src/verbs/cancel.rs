//! `kgfleet cancel`.

use domain::control::BenchmarkCommand;

use crate::engine::steer::Steered;
use crate::kit::exit_code::ExitCode;

/// Stop a run for good; workers of a fleet drop its dialogues.
///
/// Existing records stay, and `kgfleet resume RUN` continues the run. A process of this machine that works at a run is stopped by
/// Ctrl-C.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: Steered,
}

/// `kgfleet cancel`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    arguments.of.command(BenchmarkCommand::Cancel)
}

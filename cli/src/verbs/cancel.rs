//! `kgfleet cancel`.

use domain::control::BenchmarkCommand;

use crate::kit::exit_code::ExitCode;
use crate::place::steer::Steered;

/// Stop a run of a fleet; workers drop its dialogues.
///
/// Existing records stay, and `kgfleet resume RUN` continues the run. A run of this machine is stopped by Ctrl-C.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: Steered,
}

/// `kgfleet cancel`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    arguments.of.command(BenchmarkCommand::Cancel)
}

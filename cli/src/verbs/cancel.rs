//! `kgfleet cancel`.

use domain::control::BenchmarkCommand;

use crate::kit::exit_code::ExitCode;
use crate::place::steer::{self, Steered};

/// Stop a run; workers drop its dialogues.
///
/// Existing records stay, and `kgfleet resume RUN` continues the run.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: Steered,
}

/// `kgfleet cancel`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Steered { run, json, remote } = arguments.of;
    steer::command(&remote, run, BenchmarkCommand::Cancel, json)
}

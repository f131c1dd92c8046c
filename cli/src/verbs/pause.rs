//! `kgfleet pause`.

use domain::control::BenchmarkCommand;

use crate::kit::exit_code::ExitCode;
use crate::place::steer::{self, Steered};

/// Stop handing out work of a run; leased work continues.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: Steered,
}

/// `kgfleet pause`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Steered { run, json, remote } = arguments.of;
    steer::command(&remote, run, BenchmarkCommand::Pause, json)
}

//! `kgfleet resume`.

use domain::control::BenchmarkCommand;

use crate::engine::start::{self, Common};
use crate::kit::exit_code::ExitCode;
use crate::place::remote::MaybeRemote;
use crate::place::{Place, completing, names, steer};

/// Continue an interrupted run, on this machine or in a fleet.
///
/// Dialogues with a durable record are not asked again. A run that you did not start on this machine contacts nothing and
/// reads no key unless --trust-endpoints is given. Exit codes as for `kgfleet run`; in a fleet 0 if the run
/// continues.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP, add = completing::runs())]
    run: String,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    common: Common,
}

/// `kgfleet resume`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(remote) = start::named(&arguments.remote, &arguments.common)? {
        return steer::command(
            &Place::Fleet(remote),
            &arguments.run,
            BenchmarkCommand::Resume,
            arguments.common.json,
        );
    }
    start::go_on(&arguments.run, arguments.common, None)
}

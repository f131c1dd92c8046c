//! `kgfleet retry`.

use domain::FailureCause;

use crate::engine::start::{self, Common};
use crate::kit::exit_code::ExitCode;
use crate::place::remote::MaybeRemote;
use crate::place::{Place, completing, names, steer};

/// Ask failed dialogues of a run again, on this machine or in a fleet.
///
/// A scored record replaces a failed one, never the other way round. Exit codes as for `kgfleet run`; in a
/// fleet 0 if the dialogues are queued.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP, add = completing::runs())]
    run: String,
    /// Only failures with this cause; repeatable. Default: all.
    #[arg(long = "cause", value_name = "CAUSE")]
    causes: Vec<FailureCause>,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    common: Common,
}

/// `kgfleet retry`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(remote) = start::named(&arguments.remote, &arguments.common)? {
        return steer::retry(&Place::Fleet(remote), &arguments.run, &arguments.causes, arguments.common.json);
    }
    start::go_on(&arguments.run, arguments.common, Some(arguments.causes))
}

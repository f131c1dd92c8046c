//! `kgfleet fleet workers`.

mod drain;
mod spool;

use domain::control::Control;
use report::tables::fleet;

use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::runtime::block_on;
use crate::kit::screen::print_all;
use crate::place::remote::Remote;

/// List the workers of a fleet, drain one or all, or look after the records that workers of this machine have not delivered.
///
/// A worker that went away without signing off stays in the list for an hour, with what it held.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Drain(Box<drain::Arguments>),
    Spool(spool::Arguments),
}

/// `kgfleet fleet workers`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        None => {}
        Some(Command::Drain(arguments)) => return drain::run(*arguments),
        Some(Command::Spool(arguments)) => return spool::run(arguments),
    }
    block_on(async {
        let client = arguments.remote.client()?;
        let workers = client.workers().await.map_err(explained)?;
        print_all(&workers, arguments.json, fleet::workers)?;
        Ok(ExitCode::Success)
    })
}

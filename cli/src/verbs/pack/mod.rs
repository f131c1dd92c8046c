//! `kgfleet pack`: inspect, verify, seal, unseal and import packs. One file per command, one for both directions of sealing.

mod import;
mod list;
mod seal;
mod show;
mod verify;

use clap::Subcommand;

use crate::kit::exit_code::ExitCode;

/// Work with task packs: the exercises of the benchmark, sealed against crawlers.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Verify(verify::Arguments),
    List(list::Arguments),
    Show(show::Arguments),
    Seal(seal::SealArguments),
    Unseal(seal::UnsealArguments),
    Import(import::Arguments),
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.verb {
        Verb::Verify(arguments) => verify::run(&arguments),
        Verb::List(arguments) => list::run(&arguments),
        Verb::Show(arguments) => show::run(&arguments),
        Verb::Seal(arguments) => seal::seal(&arguments),
        Verb::Unseal(arguments) => seal::unseal(&arguments),
        Verb::Import(arguments) => import::run(arguments),
    }
}

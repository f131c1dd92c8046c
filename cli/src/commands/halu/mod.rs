//! `kgfleet halu`: KGHaluBench's questions. One file per command.

use clap::Subcommand;

use crate::exit_code::ExitCode;

mod client;
mod generate;
mod source;

/// Work with KGHaluBench: questions about the entities of a knowledge graph.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Generate(generate::Arguments),
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.verb {
        Verb::Generate(arguments) => generate::run(&arguments),
    }
}

//! `kgfleet task`: write, check and publish task files. One file per command.

mod changes;
mod check;
mod list;
mod new;
mod schema;
mod seal;
mod show;

use clap::Subcommand;

use crate::kit::exit_code::ExitCode;

/// Work with task files: your own tasks in one TOML file, run by `kgfleet run FILE`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    New(new::Arguments),
    Check(check::Arguments),
    List(list::Arguments),
    Show(show::Arguments),
    Seal(seal::Arguments),
    Schema(schema::Arguments),
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.verb {
        Verb::New(arguments) => new::run(&arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::List(arguments) => list::run(&arguments),
        Verb::Show(arguments) => show::run(&arguments),
        Verb::Seal(arguments) => seal::run(&arguments),
        Verb::Schema(arguments) => schema::run(&arguments),
    }
}

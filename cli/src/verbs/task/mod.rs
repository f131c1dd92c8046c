//! `kgfleet task`: write, check and publish task files. One file per command, but for `schema`.

mod changes;
mod check;
mod list;
mod new;
mod seal;
mod show;

use std::io::{self, Write};

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
    Schema(SchemaArguments),
}

/// Print the JSON Schema of task files, by which editors complete and check them.
///
/// A line `#:schema PATH` at the top of a task file names it for editors that use Taplo or Tombi.
///
/// Exit codes: 0 printed.
#[derive(Debug, clap::Args)]
struct SchemaArguments {}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.verb {
        Verb::New(arguments) => new::run(&arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::List(arguments) => list::run(&arguments),
        Verb::Show(arguments) => show::run(&arguments),
        Verb::Seal(arguments) => seal::run(&arguments),
        Verb::Schema(SchemaArguments {}) => {
            let schema = packs::task_files::schema::schema();
            writeln!(io::stdout().lock(), "{}", serde_json::to_string_pretty(schema)?)?;
            Ok(ExitCode::Success)
        }
    }
}

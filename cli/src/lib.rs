//! The command line: one binary, `kgfleet`, whose verbs wire the other crates together.
//!
//! Standard output is data, standard error is talk. Exit codes are listed in [`exit_code`].

use clap::{Parser, Subcommand};

pub mod commands;
pub mod exit_code;
pub mod output;
pub mod reevaluate;

use exit_code::{ExitCode, code_of};

/// Benchmark language models on knowledge-graph work.
#[derive(Debug, Parser)]
#[command(name = "kgfleet", version, propagate_version = true, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Reevaluate(commands::reevaluate::Arguments),
}

/// Runs the command line of this process to its exit code.
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Reevaluate(arguments) => commands::reevaluate::run(arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::Success,
        Err(error) => {
            eprintln!("kgfleet: {}", output::printable(&format!("{error:#}")));
            code_of(&error)
        }
    }
}

//! The command line: one binary, `kgfleet`, whose verbs wire the other crates together.
//!
//! Standard output is for data, standard error for messages. Exit codes are listed in [`kit::exit_code`].
//!
//! It has layers, each of which uses only those before it: [`kit`] (output, exit codes), [`place`] (where runs are: a
//! folder of this machine or a fleet), [`configure`] (which configuration is meant), [`files`] (files that are read and
//! written), [`engine`] (runs a benchmark on this machine), [`reevaluate`], and [`verbs`]. To add a verb, add a file
//! and its line in `verbs/mod.rs`.

pub mod configure;
pub mod engine;
pub mod files;
pub mod kit;
pub mod place;
pub mod reevaluate;
pub mod verbs;

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser};
use kit::exit_code::{ExitCode, code_of};
use kit::{environment, output, shells};
use service_kit::telemetry::{self, LogFormat};

/// The heading of options that every verb takes.
const EVERYWHERE: &str = "Everywhere";

/// Benchmark language models on knowledge-graph work.
#[derive(Debug, Parser)]
#[command(name = "kgfleet", version, propagate_version = true, max_term_width = 110)]
struct Cli {
    /// Form of log lines on standard error: `text`, or `json` with one object in a line.
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "FORMAT", env = "KGFLEET_LOG_FORMAT", default_value = "text", value_parser = log_format)]
    log_format: LogFormat,
    /// Say only errors, warnings and results: no progress, no notes.
    #[arg(long, short, global = true, help_heading = EVERYWHERE, conflicts_with = "verbose")]
    quiet: bool,
    /// Log what it does; twice (-vv) with details. The variable KGFLEET_LOG says it for each part of the program.
    #[arg(long, short, global = true, help_heading = EVERYWHERE, action = clap::ArgAction::Count)]
    verbose: u8,
    /// File with environment variables, such as keys of servers: lines NAME=VALUE. A variable that is set stays as it is.
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "FILE")]
    env_file: Option<PathBuf>,
    #[command(subcommand)]
    command: verbs::Command,
}

/// The whole command line as data, from which `docs/reference/cli.md` is generated.
pub fn command_line() -> clap::Command {
    verbs::grouped(Cli::command())
}

/// Runs the command line of this process, or answers a shell that asks how one goes on; returns the exit code.
pub fn main() -> ExitCode {
    if let Some(code) = shells::answer(command_line) {
        return code;
    }
    let Cli { log_format, quiet, verbose, env_file, command } =
        Cli::from_arg_matches(&command_line().get_matches()).unwrap_or_else(|error| error.exit());
    if let Some(file) = env_file
        && let Err(error) = environment::take(&file)
    {
        eprintln!("kgfleet: {}", output::explain(&error));
        return code_of(&error);
    }
    if let Err(error) = environment::keep_files_private() {
        eprintln!("kgfleet: {}", output::explain(&error));
        return code_of(&error);
    }
    if quiet {
        output::be_quiet();
    }
    // Those that serve for days tell what they do; the others speak for themselves.
    let serves = matches!(
        command,
        verbs::Command::Coordinator(_) | verbs::Command::Worker(_) | verbs::Command::Conduct(_)
    );
    let level = match verbose {
        0 if serves => "info",
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    if let Err(error) = telemetry::init(log_format, level) {
        eprintln!("kgfleet: {error}");
        return ExitCode::Usage;
    }
    let outcome = command.run();
    match outcome {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::Success,
        Err(error) => {
            eprintln!("kgfleet: {}", output::explain(&error));
            code_of(&error)
        }
    }
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("expected `text` or `json`".to_owned()),
    }
}

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

use clap::{CommandFactory, Parser};
use kit::exit_code::{ExitCode, code_of};
use kit::output;
use service_kit::telemetry::{self, LogFormat};

/// Benchmark language models on knowledge-graph work.
#[derive(Debug, Parser)]
#[command(name = "kgfleet", version, propagate_version = true, max_term_width = 110)]
struct Cli {
    /// Form of log lines on standard error: `text`, or `json` with one object in a line.
    #[arg(long, global = true, value_name = "FORMAT", env = "KGFLEET_LOG_FORMAT", default_value = "text", value_parser = log_format)]
    log_format: LogFormat,
    #[command(subcommand)]
    command: verbs::Command,
}

/// The whole command line as data, from which `docs/reference/cli.md` is generated.
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// Runs the command line of this process; returns its exit code.
pub fn main() -> ExitCode {
    let Cli { log_format, command } = Cli::parse();
    // Those that serve for days tell what they do; the others speak for themselves.
    let serves = matches!(
        command,
        verbs::Command::Coordinator(_) | verbs::Command::Worker(_) | verbs::Command::Conduct(_)
    );
    if let Err(error) = telemetry::init(log_format, if serves { "info" } else { "warn" }) {
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

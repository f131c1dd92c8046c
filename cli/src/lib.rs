//! The command line: one binary, `kgfleet`, whose verbs wire the other crates together.
//!
//! Standard output is data, standard error is talk. Exit codes are listed in [`exit_code`].

use clap::{CommandFactory, Parser, Subcommand};

pub mod commands;
pub mod exit_code;
pub mod output;
pub mod reevaluate;
pub mod run;

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
    Run(commands::run::RunArguments),
    Resume(commands::run::ResumeArguments),
    Retry(commands::run::RetryArguments),
    Plan(commands::plan::Arguments),
    Runs(commands::runs::RunsArguments),
    Show(commands::runs::ShowArguments),
    Export(commands::runs::ExportArguments),
    Verify(commands::runs::VerifyArguments),
    Rm(commands::runs::RemoveArguments),
    Pack(commands::pack::Arguments),
    Reevaluate(commands::reevaluate::Arguments),
    Simulate(commands::simulate::Arguments),
    /// An evaluation process; started by the other verbs, not by people.
    #[command(name = run::EVALUATOR_COMMAND, hide = true)]
    EvaluationProcess,
}

/// Environment variable with the log filter, in the syntax of tracing's `EnvFilter`. Default: `warn`.
const LOG_FILTER: &str = "KGFLEET_LOG";

/// The whole command line as data, from which its reference in `docs/reference/cli.md` is made.
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// Runs the command line of this process to its exit code.
pub fn main() -> ExitCode {
    log_to_stderr();
    let outcome = match Cli::parse().command {
        Command::Run(arguments) => commands::run::run(arguments),
        Command::Resume(arguments) => commands::run::resume(arguments),
        Command::Retry(arguments) => commands::run::retry(arguments),
        Command::Plan(arguments) => commands::plan::run(arguments),
        Command::Runs(arguments) => commands::runs::runs(arguments),
        Command::Show(arguments) => commands::runs::show(arguments),
        Command::Export(arguments) => commands::runs::export(arguments),
        Command::Verify(arguments) => commands::runs::verify(arguments),
        Command::Rm(arguments) => commands::runs::remove(arguments),
        Command::Pack(arguments) => commands::pack::run(arguments),
        Command::Reevaluate(arguments) => commands::reevaluate::run(arguments),
        Command::Simulate(arguments) => commands::simulate::run(arguments),
        Command::EvaluationProcess => worker::evaluate::sandbox::child::serve(run::material::load)
            .map(|()| ExitCode::Success)
            .map_err(Into::into),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::Success,
        Err(error) => {
            eprintln!("kgfleet: {}", output::explain(&error));
            code_of(&error)
        }
    }
}

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env(LOG_FILTER)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Fails only where a subscriber is set already, as in tests that run several commands in one process.
    let _ = subscriber.with_target(false).try_init();
}

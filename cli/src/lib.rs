//! The command line: one binary, `kgfleet`, whose verbs wire the other crates together.
//!
//! Standard output is data, standard error is talk. Exit codes are listed in [`exit_code`].

use clap::{CommandFactory, Parser, Subcommand};

mod arguments;
pub mod commands;
pub mod exit_code;
pub mod notify;
pub mod output;
pub mod reevaluate;
pub mod run;
mod run_name;

use commands::fleet;
use exit_code::{ExitCode, code_of};
use service_kit::telemetry::{self, LogFormat};

/// Benchmark language models on knowledge-graph work.
#[derive(Debug, Parser)]
#[command(name = "kgfleet", version, propagate_version = true, max_term_width = 110)]
struct Cli {
    /// Form of log lines on standard error: `text`, or `json` with one object in a line.
    #[arg(long, global = true, value_name = "FORMAT", env = "KGFLEET_LOG_FORMAT", default_value = "text", value_parser = log_format)]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(commands::run::RunArguments),
    Judge(commands::run::JudgeArguments),
    Resume(commands::run::ResumeArguments),
    Retry(commands::run::RetryArguments),
    Plan(commands::plan::Arguments),
    Runs(commands::runs::RunsArguments),
    Show(commands::runs::ShowArguments),
    Export(commands::runs::ExportArguments),
    Table(commands::table::Arguments),
    Compare(commands::compare::Arguments),
    Report(commands::report::Arguments),
    Bundle(commands::bundle::BundleArguments),
    Unbundle(commands::bundle::UnbundleArguments),
    Push(commands::moving::PushArguments),
    Pull(commands::moving::PullArguments),
    Verify(commands::verify::VerifyArguments),
    Rm(commands::runs::RemoveArguments),
    Pack(commands::pack::Arguments),
    Halu(commands::halu::Arguments),
    Reevaluate(commands::reevaluate::Arguments),
    Rejudge(commands::rejudge::Arguments),
    Simulate(commands::simulate::Arguments),
    Coordinator(fleet::serve::CoordinatorArguments),
    Worker(fleet::serve::WorkerArguments),
    Submit(fleet::submit::Arguments),
    Status(fleet::watch::StatusArguments),
    Watch(fleet::watch::WatchArguments),
    Pause(fleet::steer::PauseArguments),
    Cancel(fleet::steer::CancelArguments),
    Workers(fleet::workers::WorkersArguments),
    Drain(fleet::workers::DrainArguments),
    Dlq(fleet::dlq::Arguments),
    Spool(fleet::spool::Arguments),
    Check(fleet::check::Arguments),
    Launch(Box<commands::launch::Arguments>),
    Token(fleet::token::Arguments),
    /// An evaluation process; started by the other verbs, not by people.
    #[command(name = worker::EVALUATOR_COMMAND, hide = true)]
    EvaluationProcess,
}

/// The whole command line as data, from which its reference in `docs/reference/cli.md` is made.
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// Runs the command line of this process to its exit code.
pub fn main() -> ExitCode {
    let Cli { log_format, command } = Cli::parse();
    // Those that serve for days tell what they do; the others speak for themselves.
    let serves = matches!(command, Command::Coordinator(_) | Command::Worker(_));
    if let Err(error) = telemetry::init(log_format, if serves { "info" } else { "warn" }) {
        eprintln!("kgfleet: {error}");
        return ExitCode::Usage;
    }
    let outcome = match command {
        Command::Run(arguments) => commands::run::run(arguments),
        Command::Judge(arguments) => commands::run::judge(arguments),
        Command::Resume(arguments) => commands::run::resume(arguments),
        Command::Retry(arguments) => commands::run::retry(arguments),
        Command::Plan(arguments) => commands::plan::run(arguments),
        Command::Runs(arguments) => commands::runs::runs(arguments),
        Command::Show(arguments) => commands::runs::show(arguments),
        Command::Export(arguments) => commands::runs::export(arguments),
        Command::Table(arguments) => commands::table::run(arguments),
        Command::Compare(arguments) => commands::compare::run(arguments),
        Command::Report(arguments) => commands::report::run(arguments),
        Command::Bundle(arguments) => commands::bundle::bundle(arguments),
        Command::Unbundle(arguments) => commands::bundle::unbundle(arguments),
        Command::Push(arguments) => commands::moving::push(arguments),
        Command::Pull(arguments) => commands::moving::pull(arguments),
        Command::Verify(arguments) => commands::verify::verify(arguments),
        Command::Rm(arguments) => commands::runs::remove(arguments),
        Command::Pack(arguments) => commands::pack::run(arguments),
        Command::Halu(arguments) => commands::halu::run(arguments),
        Command::Reevaluate(arguments) => commands::reevaluate::run(arguments),
        Command::Rejudge(arguments) => commands::rejudge::run(arguments),
        Command::Simulate(arguments) => commands::simulate::run(arguments),
        Command::Coordinator(arguments) => fleet::serve::coordinator(arguments),
        Command::Worker(arguments) => fleet::serve::worker(arguments),
        Command::Submit(arguments) => fleet::submit::run(arguments),
        Command::Status(arguments) => fleet::watch::status(arguments),
        Command::Watch(arguments) => fleet::watch::watch(arguments),
        Command::Pause(arguments) => fleet::steer::pause(arguments),
        Command::Cancel(arguments) => fleet::steer::cancel(arguments),
        Command::Workers(arguments) => fleet::workers::workers(arguments),
        Command::Drain(arguments) => fleet::workers::drain(arguments),
        Command::Dlq(arguments) => fleet::dlq::run(arguments),
        Command::Spool(arguments) => fleet::spool::run(arguments),
        Command::Check(arguments) => fleet::check::run(arguments),
        Command::Launch(arguments) => commands::launch::run(*arguments),
        Command::Token(arguments) => fleet::token::run(arguments),
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

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("expected `text` or `json`".to_owned()),
    }
}

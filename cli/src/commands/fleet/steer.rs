//! `kgfleet pause`, `kgfleet cancel`, and what `resume` and `retry` do at a coordinator.

use std::io::{self, Write};

use domain::FailureCause;
use domain::control::{BenchmarkCommand, Control};

use super::{Remote, explained, view};
use crate::exit_code::ExitCode;
use crate::run_name;

/// Stop handing out work of a run; leased work continues.
#[derive(Debug, clap::Args)]
pub struct PauseArguments {
    #[command(flatten)]
    of: Steered,
}

/// Stop a run; workers drop its dialogues.
///
/// Existing records stay, and `kgfleet resume RUN --coordinator URL` continues the run.
#[derive(Debug, clap::Args)]
pub struct CancelArguments {
    #[command(flatten)]
    of: Steered,
}

#[derive(Debug, clap::Args)]
struct Steered {
    #[arg(help = run_name::HELP)]
    run: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// `kgfleet pause`.
pub fn pause(arguments: PauseArguments) -> anyhow::Result<ExitCode> {
    let Steered { run, json, remote } = arguments.of;
    command(&remote, run, BenchmarkCommand::Pause, json)
}

/// `kgfleet cancel`.
pub fn cancel(arguments: CancelArguments) -> anyhow::Result<ExitCode> {
    let Steered { run, json, remote } = arguments.of;
    command(&remote, run, BenchmarkCommand::Cancel, json)
}

/// Asks a coordinator to pause, resume or cancel a run.
pub fn command(
    remote: &Remote,
    run: String,
    command: BenchmarkCommand,
    json: bool,
) -> anyhow::Result<ExitCode> {
    remote.about(&run, async |client, run| {
        let view = client.command(run, command).await.map_err(explained)?;
        if json {
            writeln!(io::stdout(), "{}", serde_json::to_string(&view)?)?;
        } else {
            eprintln!("{}", view::headline(&view));
        }
        Ok(ExitCode::Success)
    })
}

/// Asks a coordinator to remove a run.
pub fn remove(remote: &Remote, run: &str, force: bool) -> anyhow::Result<ExitCode> {
    remote.about(run, async |client, run| {
        client.remove(run, force).await.map_err(explained)?;
        eprintln!("removed run {run}");
        Ok(ExitCode::Success)
    })
}

/// Asks a coordinator to queue failed dialogues again.
pub fn retry(remote: &Remote, run: &str, causes: &[FailureCause], json: bool) -> anyhow::Result<ExitCode> {
    remote.about(run, async |client, run| {
        let queued = client.retry(run, causes).await.map_err(explained)?;
        if json {
            writeln!(io::stdout(), "{}", serde_json::json!({ "run": run, "queued": queued }))?;
        }
        eprintln!("{queued} failed dialogues of run {run} queued again");
        Ok(ExitCode::Success)
    })
}

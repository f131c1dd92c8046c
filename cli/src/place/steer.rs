//! Commands to a coordinator about a run of its fleet that several verbs share.

use std::io::{self, Write};

use domain::FailureCause;
use domain::control::{BenchmarkCommand, Control};

use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::output::note;
use crate::kit::view;
use crate::place::remote::Remote;
use crate::place::{completing, names};

/// A run of a fleet that is to go on in another way.
#[derive(Debug, clap::Args)]
pub struct Steered {
    #[arg(help = names::HELP, add = completing::runs_of_fleet())]
    pub run: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub remote: Remote,
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
            note!("{}", view::headline(&view));
        }
        Ok(ExitCode::Success)
    })
}

/// Asks a coordinator to remove a run.
pub fn remove(remote: &Remote, run: &str, force: bool) -> anyhow::Result<ExitCode> {
    remote.about(run, async |client, run| {
        client.remove(run, force).await.map_err(explained)?;
        note!("removed run {run}");
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
        note!("{queued} failed dialogues of run {run} queued again");
        Ok(ExitCode::Success)
    })
}

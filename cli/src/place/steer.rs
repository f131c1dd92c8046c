//! Commands to a coordinator about a run of its fleet that several verbs share.

use std::io::{self, Write};

use domain::FailureCause;
use domain::control::{BenchmarkCommand, Control};

use crate::kit::exit_code::{ExitCode, explained, usage};
use crate::kit::output::note;
use crate::kit::view;
use crate::place::data_dir::DataDir;
use crate::place::remote::Remote;
use crate::place::{completing, names};

/// A run of a fleet that is to go on in another way.
#[derive(Debug, clap::Args)]
pub struct Steered {
    #[arg(help = names::HELP, add = completing::runs_of_fleet())]
    run: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    data: DataDir,
}

impl Steered {
    /// Asks its coordinator to pause or cancel it.
    ///
    /// # Errors
    /// No fleet is named, and it is a run of this machine.
    pub fn command(self, command: BenchmarkCommand) -> anyhow::Result<ExitCode> {
        let Self { run, json, remote, data } = self;
        if !remote.is_named()? {
            let found = names::of_folder(&run, data.path())?;
            if names::is_in(found.as_str(), data.path())? {
                return Err(usage!(
                    "run {found} is one of this machine, and `pause` and `cancel` are for runs of a fleet: Ctrl-C stops the \
                     process that works at it, and `kgfleet resume {found}` goes on"
                ));
            }
        }
        self::command(&remote, run, command, json)
    }
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

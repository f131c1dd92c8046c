//! `kgfleet submit`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use domain::Priority;

use crate::configure::choose::{self, Selection};
use crate::engine::notify::Notify;
use crate::engine::{submit, watch};
use crate::kit::exit_code::ExitCode;
use crate::kit::output::note;
use crate::kit::runtime::block_on;
use crate::kit::view;
use crate::place::remote::Remote;
use crate::place::{completing, folders};

/// Longest time to wait for coordinators, in seconds.
const WAIT_SECONDS_MAX: u64 = 24 * 3_600;

/// Queue a run at a coordinator.
///
/// Joins an unfinished run of the same configuration. Exit codes: 0 queued; with --follow as for `kgfleet status --follow`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("on_end", |arg| arg.requires("follow")), mut_arg("webhook", |arg| arg.requires("follow")))]
pub struct Arguments {
    /// Configuration file (TOML or YAML, or LLM-KG-Bench's configuration.yml), or `quick` for the bundled one.
    #[arg(add = choose::completed())]
    config: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Do not begin a run, but add to this one the models, tasks and iterations that are new in the configuration; to a
    /// judged benchmark, models.
    #[arg(long, value_name = "RUN", add = completing::runs_of_fleet())]
    extend: Option<String>,
    /// Its share of the fleet beside your other runs, 1 to 100: one of 20 gets twice as much as one of 10. Default: the
    /// configuration's `priority`, or 10.
    #[arg(long, value_name = "N")]
    priority: Option<Priority>,
    /// Seconds for which coordinators that cannot be reached are waited for.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=WAIT_SECONDS_MAX))]
    wait: u64,
    /// Check the configuration, say what would be submitted and where, and stop. Nobody is asked.
    #[arg(long)]
    dry_run: bool,
    /// Follow the run until it ends.
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    notify: Notify,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut configuration = arguments.selection.configuration(Some(&arguments.config))?;
    if arguments.priority.is_some() {
        configuration.priority = arguments.priority;
    }
    if arguments.dry_run {
        let (_, plan) = folders::plan(&configuration)?;
        let (models, tasks) = (plan.models.len(), plan.tasks.len());
        let size = format!("{} dialogues; models: {models}, tasks: {tasks}", plan.dialogues());
        let place = arguments.remote.address();
        writeln!(io::stdout().lock(), "kgfleet would submit `{}` to {place}: {size}", configuration.name)?;
        return Ok(ExitCode::Success);
    }
    let Arguments { remote, extend, wait, follow, notify, json, .. } = arguments;
    let queued = submit::submit(&remote, &configuration, extend.as_deref(), Duration::from_secs(wait))?;
    if !follow {
        return submit::tell(&queued, json);
    }
    note!("{}", view::headline(&queued));
    block_on(async { watch::follow(&remote.client()?, &queued.run, json, &notify).await })
}

//! `kgfleet submit`.

use std::path::PathBuf;

use crate::configure::choose::Selection;
use crate::engine::notify::Notify;
use crate::engine::submit;
use crate::kit::exit_code::ExitCode;
use crate::place::remote::Remote;

/// Queue a run at a coordinator.
///
/// Joins an unfinished run of the same configuration. Exit codes: 0 queued; with --watch as for `kgfleet watch`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("targets", |notify| notify.requires("watch")))]
pub struct Arguments {
    /// Configuration file (TOML or YAML, or LLM-KG-Bench's configuration.yml), or `quick` for the bundled one.
    config: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Do not begin a run, but add to this one the models, tasks and iterations that are new in the configuration; to a
    /// judged benchmark, models.
    #[arg(long, value_name = "RUN")]
    extend: Option<String>,
    /// Watch the run until it ends.
    #[arg(long)]
    watch: bool,
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
    let configuration = arguments.selection.configuration(Some(&arguments.config))?;
    let watch = arguments.watch.then_some(arguments.notify);
    submit::queue(
        &arguments.remote,
        submit::submission(&configuration)?,
        arguments.extend.as_deref(),
        watch,
        arguments.json,
    )
}

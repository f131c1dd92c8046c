//! Commands about a run that several verbs share.

use domain::FailureCause;
use domain::control::BenchmarkCommand;

use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::output::{note, print_json};
use crate::kit::view;
use crate::place::{Place, PlaceOptions, completing, names};

/// A run that is to go on in another way.
#[derive(Debug, clap::Args)]
pub struct Steered {
    #[arg(help = names::HELP, add = completing::runs())]
    run: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceOptions,
}

impl Steered {
    /// Pauses or cancels it.
    ///
    /// # Errors
    /// A process of this machine works at it.
    pub fn command(self, command: BenchmarkCommand) -> anyhow::Result<ExitCode> {
        self::command(&self.place.place()?, &self.run, command, self.json)
    }
}

/// Pauses, resumes or cancels a run.
pub fn command(place: &Place, run: &str, command: BenchmarkCommand, json: bool) -> anyhow::Result<ExitCode> {
    place.about(run, async |control, run| {
        let view = control.command(run, command).await.map_err(explained)?;
        if json {
            print_json(&view)?;
        } else {
            note!("{}", view::headline(&view));
        }
        Ok(ExitCode::Success)
    })
}

/// Queues failed dialogues of a run of a fleet again.
pub fn retry(place: &Place, run: &str, causes: &[FailureCause], json: bool) -> anyhow::Result<ExitCode> {
    place.about(run, async |control, run| {
        let queued = control.retry(run, causes).await.map_err(explained)?;
        if json {
            print_json(&serde_json::json!({ "run": run, "queued": queued }))?;
        }
        note!("{queued} failed dialogues of run {run} queued again");
        Ok(ExitCode::Success)
    })
}

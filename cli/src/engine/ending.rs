//! The summary of a run on this machine: printed by its command, with the exit code.

use coordinator::plan::Plan;
use domain::control::BenchmarkView;
use domain::{ModelLabel, TaskLabel};
use results::{RunDir, RunManifest};
use worker::TaskList;

use crate::kit::exit_code::ExitCode;
use crate::kit::output::figure;

/// The result of a session.
pub struct RunSummary {
    pub dir: RunDir,
    pub manifest: RunManifest,
    pub plan: Plan,
    pub tasks: TaskList,
    /// Scores and failures.
    pub view: BenchmarkView,
    /// Models that could not be asked any more, each with the reason.
    pub parked: Vec<(ModelLabel, String)>,
    /// Wall-clock time of this process, in seconds.
    pub seconds: f64,
    /// Number of dialogues added by this process.
    pub added: u64,
}

impl RunSummary {
    /// Whether everything planned has a record.
    pub fn is_complete(&self) -> bool {
        self.view.done() == self.view.planned
    }

    /// The name of the headline score of a task.
    pub fn score_of(&self, task: &TaskLabel) -> Option<String> {
        let place = self.plan.tasks.iter().position(|planned| planned.label == *task)?;
        Some(self.tasks.get(place)?.class.headline.join("."))
    }

    /// The time that this process took, and its rate if it added dialogues.
    pub fn pace(&self) -> String {
        let time = format!("{:.1} s", self.seconds);
        match self.added {
            0 => time,
            added => format!("{time}, {} dialogues/s", figure(added as f64 / self.seconds.max(0.001))),
        }
    }

    /// The exit code of the command.
    pub fn exit_code(&self) -> ExitCode {
        match (self.is_complete(), self.view.failed) {
            (false, _) if !self.parked.is_empty() => ExitCode::Infrastructure,
            (false, _) => ExitCode::Interrupted,
            (true, 0) => ExitCode::Success,
            (true, _) => ExitCode::Unsatisfied,
        }
    }
}

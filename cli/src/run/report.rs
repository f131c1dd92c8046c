//! What a run on this machine came to: what its command prints, and the exit code.

use coordinator::plan::Plan;
use domain::control::RunView;
use domain::{ModelLabel, TaskLabel};
use results::{RunDir, RunManifest};
use worker::TaskList;

use crate::exit_code::ExitCode;
use crate::output::figure;

/// What a finished session tells.
pub struct Report {
    /// The run's folder.
    pub dir: RunDir,
    /// The run.
    pub manifest: RunManifest,
    /// What was planned.
    pub plan: Plan,
    /// Its tasks.
    pub tasks: TaskList,
    /// Scores and failures.
    pub view: RunView,
    /// Models that could not be asked any more, each with the reason.
    pub parked: Vec<(ModelLabel, String)>,
    /// Wall time of this process's part in seconds.
    pub seconds: f64,
    /// Dialogues of this process.
    pub added: u64,
}

impl Report {
    /// Whether everything planned has a record.
    pub fn is_complete(&self) -> bool {
        self.view.done() == self.view.planned
    }

    /// The name of the headline score of a task.
    pub fn score_of(&self, task: &TaskLabel) -> Option<String> {
        let place = self.plan.tasks.iter().position(|planned| planned.label == *task)?;
        Some(self.tasks.get(place)?.class.headline.join("."))
    }

    /// How long this process took, and how fast it was where it did anything.
    pub fn pace(&self) -> String {
        let time = format!("{:.1} s", self.seconds);
        match self.added {
            0 => time,
            added => format!("{time}, {} dialogues/s", figure(added as f64 / self.seconds.max(0.001))),
        }
    }

    /// The exit code that the report leads to.
    pub fn exit_code(&self) -> ExitCode {
        match (self.is_complete(), self.view.failed) {
            (false, _) if !self.parked.is_empty() => ExitCode::Infrastructure,
            (false, _) => ExitCode::Interrupted,
            (true, 0) => ExitCode::Success,
            (true, _) => ExitCode::Unsatisfied,
        }
    }
}

//! How a benchmark ended, and the exit code that follows: one rule for every verb, on one machine and in a fleet.

use coordinator::configuration::Configuration;
use coordinator::plan::Plan;
use domain::TaskLabel;
use domain::control::{BenchmarkView, RunPhase};
use worker::TaskList;

use crate::kit::exit_code::ExitCode;
use crate::kit::output::figure;

/// The end of a benchmark on this machine.
pub struct LocalEnding {
    /// Scores and failures.
    pub view: BenchmarkView,
    /// Why nothing could be asked any more, if so.
    pub blocked: Vec<String>,
    /// Whether it has used as much as its cap allows, and has dialogues left.
    pub is_capped: bool,
    /// Wall-clock time of this process, in seconds.
    pub seconds: f64,
    /// Number of dialogues added by this process.
    pub added: u64,
    pub configuration: Configuration,
    pub plan: Plan,
    pub tasks: TaskList,
}

impl LocalEnding {
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
        exit_code(&self.view, !self.blocked.is_empty())
    }
}

/// The exit code of a command that followed a benchmark as far as this. `is_blocked`: it stopped because nothing could be asked.
pub fn exit_code(view: &BenchmarkView, is_blocked: bool) -> ExitCode {
    match (view.phase, view.is_complete(), view.failed) {
        (RunPhase::Cancelled, _, _) => ExitCode::Interrupted,
        (_, true, 0) => ExitCode::Success,
        (_, true, _) => ExitCode::Unsatisfied,
        (_, false, _) if is_blocked => ExitCode::Infrastructure,
        (_, false, _) => ExitCode::Interrupted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_says_whether_all_is_there_and_right_and_else_why_not() {
        let view = |phase, scored, failed| BenchmarkView {
            phase,
            planned: 4,
            scored,
            failed,
            ..BenchmarkView::default()
        };
        let (active, finished) = (RunPhase::Active, RunPhase::Finished);
        assert_eq!(exit_code(&view(finished, 4, 0), false), ExitCode::Success);
        assert_eq!(exit_code(&view(active, 4, 0), true), ExitCode::Success);
        assert_eq!(exit_code(&view(finished, 3, 1), false), ExitCode::Unsatisfied);
        assert_eq!(exit_code(&view(active, 3, 0), true), ExitCode::Infrastructure);
        assert_eq!(exit_code(&view(active, 3, 0), false), ExitCode::Interrupted);
        assert_eq!(exit_code(&view(RunPhase::Cancelled, 4, 0), false), ExitCode::Interrupted);
    }
}

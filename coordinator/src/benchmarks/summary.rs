//! What came out of a pipeline for a model, as the sink keeps it: a status that reads it needs no log.

use benchmarks::JudgedDialogue;
use benchmarks::report::JudgedOutcome;
use domain::{FailureCause, Mean, ModelLabel};
use serde::{Deserialize, Serialize};

use crate::benchmarks::progress::{ModelProgress, StageRunStates};

/// The numbers of a model, and of which states of its runs they are true.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelSummary {
    pub model: ModelLabel,
    /// Dialogues planned.
    pub planned: u64,
    /// Those that have scores.
    pub scored: u64,
    /// Those that wait for a verdict.
    #[serde(default)]
    pub waiting: u64,
    /// Those that have no scores and wait for nothing, by stage and cause.
    #[serde(default)]
    pub not_judged: Vec<(String, FailureCause, u64)>,
    /// The numbers, by name.
    pub metrics: Vec<(String, Mean)>,
    /// Hash of the runs with their states: others bring other numbers.
    pub runs: String,
}

impl ModelSummary {
    /// Of what is known of a model.
    pub(crate) fn of(known: &ModelProgress) -> Self {
        let report = &known.report;
        let waiting = |judged: &&JudgedDialogue| matches!(judged.outcome, JudgedOutcome::Waiting(_));
        let not_judged =
            report.not_judged.iter().map(|(why, dialogues)| (why.stage.to_owned(), why.cause, *dialogues));
        Self {
            model: report.model.clone(),
            planned: report.planned,
            scored: report.scored,
            waiting: known.judged.iter().filter(waiting).count() as u64,
            not_judged: not_judged.collect(),
            metrics: report.metrics.iter().map(|metric| (metric.name.to_owned(), metric.mean)).collect(),
            runs: hash(&known.runs),
        }
    }

    /// Whether it is true of these runs.
    pub(crate) fn is_of(&self, model: &ModelLabel, runs: &[StageRunStates]) -> bool {
        self.model == *model && self.runs == hash(runs)
    }
}

fn hash(runs: &[StageRunStates]) -> String {
    results::manifest::hash(&serde_json::to_value(runs).unwrap_or_default())
}

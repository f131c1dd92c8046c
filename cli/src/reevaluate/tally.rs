//! Counts agreement, per task and in total.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::compare::{Leaf, LeafVerdict, ScoreSection};
use super::replay::Rejudged;

/// Agreement over a set of dialogues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AgreementCounts {
    /// Dialogues re-evaluated.
    pub dialogues: u64,
    /// Dialogues whose scores are all equal.
    pub dialogues_score_equal: u64,
    /// Comparable leaves of scores and infos.
    pub values: u64,
    /// Equal ones.
    pub equal: u64,
    /// Comparable leaves of scores.
    pub score_values: u64,
    /// Equal ones.
    pub score_equal: u64,
    /// Answers whose next step was predicted.
    pub steps: u64,
    /// Correct predictions.
    pub steps_equal: u64,
    /// Leaves that are not comparable, by reason.
    pub not_comparable: BTreeMap<&'static str, u64>,
}

impl AgreementCounts {
    fn add(&mut self, rejudged: &Rejudged, leaves: &[Leaf<'_>]) {
        self.dialogues += 1;
        let mut scores_equal = true;
        for leaf in leaves {
            let equal = match leaf.verdict {
                LeafVerdict::Equal => true,
                LeafVerdict::Different => false,
                LeafVerdict::Incomparable(reason) => {
                    *self.not_comparable.entry(reason.as_str()).or_default() += 1;
                    continue;
                }
            };
            self.values += 1;
            self.equal += u64::from(equal);
            if leaf.section == ScoreSection::Scores {
                self.score_values += 1;
                self.score_equal += u64::from(equal);
                scores_equal &= equal;
            }
        }
        self.dialogues_score_equal += u64::from(scores_equal);
        self.steps += rejudged.steps.len() as u64;
        self.steps_equal += rejudged.steps.iter().filter(|step| step.is_equal()).count() as u64;
    }
}

/// The share of equal values; 1 if there is nothing to compare.
fn share(equal: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { equal as f64 / all as f64 }
}

/// Counts of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskCounts {
    pub task: String,
    #[serde(flatten)]
    pub counts: AgreementCounts,
}

/// The result of a re-evaluation, as printed by `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Reevaluation {
    /// All dialogues.
    #[serde(flatten)]
    pub total: AgreementCounts,
    /// Share of equal values, 0 to 1.
    pub agreement: f64,
    /// Share of equal score values, 0 to 1.
    pub score_agreement: f64,
    /// Records that could not be re-evaluated.
    pub record_errors: u64,
    /// Files that could not be read to their end.
    pub file_errors: u64,
    /// Wall time from the first file to the last value.
    pub elapsed_seconds: f64,
    /// Dialogues per second of wall time.
    pub dialogues_per_second: f64,
    /// Per task, in order of first appearance.
    pub tasks: Vec<TaskCounts>,
}

/// Collects counts in order of first appearance of a task.
#[derive(Debug, Default)]
pub(super) struct AgreementTally {
    total: AgreementCounts,
    tasks: Vec<TaskCounts>,
    pub(super) record_errors: u64,
    pub(super) file_errors: u64,
}

impl AgreementTally {
    pub(super) fn add(&mut self, task: &str, rejudged: &Rejudged, leaves: &[Leaf<'_>]) {
        self.total.add(rejudged, leaves);
        match self.tasks.iter_mut().find(|counted| counted.task == task) {
            Some(counted) => counted.counts.add(rejudged, leaves),
            None => {
                let mut counts = AgreementCounts::default();
                counts.add(rejudged, leaves);
                self.tasks.push(TaskCounts { task: task.to_owned(), counts });
            }
        }
    }

    pub(super) fn finish(self, elapsed: Duration) -> Reevaluation {
        let (total, seconds) = (self.total, elapsed.as_secs_f64());
        Reevaluation {
            agreement: share(total.equal, total.values),
            score_agreement: share(total.score_equal, total.score_values),
            record_errors: self.record_errors,
            file_errors: self.file_errors,
            elapsed_seconds: seconds,
            dialogues_per_second: total.dialogues as f64 / seconds.max(f64::MIN_POSITIVE),
            total,
            tasks: self.tasks,
        }
    }
}

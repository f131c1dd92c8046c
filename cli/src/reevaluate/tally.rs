//! Counts agreement, per task and in total.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::compare::{Incomparable, Leaf, LeafVerdict, ScoreSection};
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
    pub(super) fn add(&mut self, rejudged: &Rejudged, leaves: &[Leaf<'_>]) {
        self.dialogues += 1;
        let mut scores_equal = true;
        for leaf in leaves {
            let equal = match leaf.verdict {
                LeafVerdict::Equal => true,
                LeafVerdict::Different => false,
                LeafVerdict::Incomparable(reason) => {
                    self.leave_out(reason);
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

    fn leave_out(&mut self, reason: Incomparable) {
        *self.not_comparable.entry(reason.as_str()).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.dialogues += other.dialogues;
        self.dialogues_score_equal += other.dialogues_score_equal;
        self.values += other.values;
        self.equal += other.equal;
        self.score_values += other.score_values;
        self.score_equal += other.score_equal;
        self.steps += other.steps;
        self.steps_equal += other.steps_equal;
        for (reason, count) in &other.not_comparable {
            *self.not_comparable.entry(reason).or_default() += count;
        }
    }
}

/// The share of equal values; 1 if there is nothing to compare.
pub(super) fn share(equal: u64, all: u64) -> f64 {
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
    tasks: Vec<TaskCounts>,
    index: BTreeMap<String, usize>,
    pub(super) record_errors: u64,
    pub(super) file_errors: u64,
}

impl AgreementTally {
    pub(super) fn of(&mut self, task: &str) -> &mut AgreementCounts {
        let index = match self.index.get(task) {
            Some(index) => *index,
            None => {
                self.tasks.push(TaskCounts { task: task.to_owned(), counts: AgreementCounts::default() });
                self.index.insert(task.to_owned(), self.tasks.len() - 1);
                self.tasks.len() - 1
            }
        };
        &mut self.tasks[index].counts
    }

    pub(super) fn finish(self, elapsed: Duration) -> Reevaluation {
        let mut total = AgreementCounts::default();
        for task in &self.tasks {
            total.merge(&task.counts);
        }
        let seconds = elapsed.as_secs_f64();
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

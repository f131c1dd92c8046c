//! Statistics of dialogues: of a model on a task, and of a model over all tasks.

use std::fmt;

use domain::ModelUsage;
use domain::ranking::Contender;

use crate::stats::SampleSummary;
use crate::stats::interval::{Estimate, Interval};

/// Index of a column in [`Dialogues::columns`](crate::dialogues::Dialogues).
pub type ColumnId = usize;

/// Index of a task in [`Dialogues::tasks`](crate::dialogues::Dialogues).
pub type TaskId = usize;

/// A model on a task: the headline score, and the cost of its dialogues.
#[derive(Clone, Debug, PartialEq)]
pub struct CellStatistics {
    pub column: ColumnId,
    pub task: TaskId,
    /// Dialogues planned.
    pub planned: u64,
    /// Statistics of the headline scores; `None` if there are none.
    pub summary: Option<SampleSummary>,
    /// Of the mean, for other exercises of the task.
    pub interval: Option<Interval>,
    /// Dialogues without scores, by reason.
    pub unscored: Vec<(String, u64)>,
    /// Means over the dialogues for which they are known.
    pub rounds: Option<f64>,
    pub prompt_tokens: Option<f64>,
    pub completion_tokens: Option<f64>,
    pub seconds: Option<f64>,
}

impl CellStatistics {
    /// The share of planned dialogues that have no score.
    pub fn unscored_share(&self) -> f64 {
        let scored = self.summary.map_or(0, |summary| summary.n as u64);
        if self.planned == 0 { 0.0 } else { 1.0 - scored.min(self.planned) as f64 / self.planned as f64 }
    }
}

/// A model over all of its tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStatistics {
    pub column: ColumnId,
    /// Number of tasks with a mean.
    pub tasks: usize,
    /// The mean of the means of its tasks: every task counts the same, however many dialogues it has.
    pub mean: Option<f64>,
    /// What its place is decided by: the same mean, and how much of the plan is in it.
    pub contender: Contender,
    /// How sure the mean is, for these tasks with other exercises.
    pub estimate: Option<Estimate>,
    pub dialogues: u64,
    pub rounds: Option<f64>,
    /// Sums over its dialogues; `None` if one of them is unknown.
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub seconds: Option<f64>,
    /// The tokens of the dialogues that were counted, and how many were not.
    pub usage: ModelUsage,
    /// The mean score of first answers and that of last ones, over dialogues that have both.
    pub gain: Option<(f64, f64)>,
}

impl ColumnStatistics {
    /// Of the mean, for these tasks with other exercises.
    pub fn interval(&self) -> Option<Interval> {
        self.estimate.map(|estimate| estimate.interval)
    }
}

/// The best and the worst place that a model may have, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankInterval {
    pub best: usize,
    pub worst: usize,
}

/// For people: `2`, or `2–4`.
impl fmt::Display for RankInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.best == self.worst {
            true => write!(f, "{}", self.best),
            false => write!(f, "{}\u{2013}{}", self.best, self.worst),
        }
    }
}

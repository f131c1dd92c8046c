//! Where a model stands: the mean of the means of its tasks, what it can still become, and how sure it is.

use domain::Mean;
use domain::ranking::Contender;

use crate::stats::describe::mean;
use crate::stats::{Estimate, TaskValues, ValueRange, estimate};

/// The headline scores of a model on a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskScores {
    /// Dialogues planned.
    pub planned: u64,
    /// Each with its case.
    pub scores: Vec<(u32, f64)>,
}

/// Where a model stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanOfTasks {
    /// What its place is decided by.
    pub contender: Contender,
    /// How sure its mean is, for these tasks with other exercises.
    pub estimate: Option<Estimate>,
}

impl MeanOfTasks {
    /// Every task counts the same, however many scores it has.
    pub fn of(tasks: impl IntoIterator<Item = TaskScores>) -> Self {
        let (mut means, mut strata) = (Vec::new(), Vec::new());
        for TaskScores { planned, scores } in tasks {
            let values: Vec<f64> = scores.iter().map(|(_, score)| *score).collect();
            means.push(Mean { value: mean(&values), covered: values.len() as u64, planned });
            strata.push(TaskValues { weight: 1.0, values: scores });
        }
        Self { contender: Contender::of_tasks(means), estimate: estimate(&strata, ValueRange::SCORE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_lies_in_its_interval_and_between_what_it_can_become() {
        let task = |planned, values: &[f64]| TaskScores {
            planned,
            scores: (0..).zip(values.iter().copied()).collect(),
        };
        let whole = MeanOfTasks::of([task(4, &[0.5, 0.75, 0.5, 0.25]), task(2, &[1.0, 1.0])]);
        let interval = whole.estimate.unwrap().interval;
        let value = whole.contender.value.unwrap();
        assert!(value == 0.75 && interval.low <= value && value <= interval.high, "{whole:?}");
        let begun = MeanOfTasks::of([task(4, &[1.0]), task(2, &[])]).contender;
        let bounds = begun.bounds.unwrap();
        assert_eq!((begun.covered, bounds.low, bounds.high), (1, 0.125, 1.0));
    }
}

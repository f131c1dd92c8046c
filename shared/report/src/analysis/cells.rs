//! A model on a task, and over all tasks: the mean of the means of its tasks, what it can still become, and how sure it is.

use domain::ranking::Contender;
use domain::{Mean, ModelUsage, tokens_of_all};

use crate::dialogues::{ColumnId, Dialogues, ReportedDialogue, TaskId, count_reasons};
use crate::stats::samples::mean;
use crate::stats::{Estimate, Interval, SampleSummary, TaskValues, ValueRange, estimate};

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

/// Every model on every task, tasks outermost; pairs without dialogues and plan are left out.
pub fn statistics(all: &Dialogues) -> &[CellStatistics] {
    all.memo.statistics.get_or_init(|| {
        let cells = all.cells();
        let mut found = Vec::new();
        for task in 0..all.tasks.len() {
            for column in 0..all.columns.len() {
                let dialogues = cells.get(&(column, task)).map_or(&[][..], Vec::as_slice);
                let planned = all.planned(column, task);
                if planned > 0 || !dialogues.is_empty() {
                    found.push(of(all, column, task, planned, dialogues));
                }
            }
        }
        found
    })
}

fn of(
    all: &Dialogues,
    column: ColumnId,
    task: TaskId,
    planned: u64,
    dialogues: &[&ReportedDialogue],
) -> CellStatistics {
    let clustered: Vec<(u32, f64)> =
        dialogues.iter().filter_map(|dialogue| Some((dialogue.case, dialogue.headline?))).collect();
    let average = |of: &dyn Fn(&ReportedDialogue) -> Option<f64>| {
        let values: Vec<f64> = dialogues.iter().filter_map(|dialogue| of(dialogue)).collect();
        mean(&values)
    };
    let reasons = count_reasons(dialogues.iter().filter_map(|dialogue| all.reason(dialogue)));
    CellStatistics {
        column,
        task,
        planned,
        summary: SampleSummary::of(clustered.iter().map(|(_, value)| *value)),
        interval: estimate(&[TaskValues { weight: 1.0, values: clustered }], ValueRange::SCORE)
            .map(|estimate| estimate.interval),
        unscored: reasons.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect(),
        rounds: average(&|dialogue| (dialogue.rounds > 0).then_some(f64::from(dialogue.rounds))),
        prompt_tokens: average(&|dialogue| dialogue.prompt_tokens.map(|tokens| tokens as f64)),
        completion_tokens: average(&|dialogue| dialogue.completion_tokens.map(|tokens| tokens as f64)),
        seconds: average(&|dialogue| dialogue.seconds),
    }
}

/// Every model over all tasks.
pub fn totals(all: &Dialogues) -> &[ColumnStatistics] {
    all.memo.totals.get_or_init(|| {
        let mut of_column: Vec<Vec<&ReportedDialogue>> = vec![Vec::new(); all.columns.len()];
        for dialogue in all.iter() {
            of_column[dialogue.column].push(dialogue);
        }
        let columns = of_column.into_iter().enumerate();
        columns.map(|(column, dialogues)| total(all, column, &dialogues)).collect()
    })
}

fn total(all: &Dialogues, column: ColumnId, dialogues: &[&ReportedDialogue]) -> ColumnStatistics {
    let of_task = |task| TaskScores { planned: all.planned(column, task), scores: Vec::new() };
    let mut by_task: Vec<TaskScores> = (0..all.tasks.len()).map(of_task).collect();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for dialogue in dialogues {
        let Some(headline) = dialogue.headline else { continue };
        by_task[dialogue.task].scores.push((dialogue.case, headline));
        if let Some((begin, end)) = gain(all, dialogue) {
            first.push(begin);
            last.push(end);
        }
    }
    let tasks = by_task.iter().filter(|task| !task.scores.is_empty()).count();
    let MeanOfTasks { contender, estimate } = MeanOfTasks::of(by_task);
    let rounds: Vec<f64> =
        dialogues.iter().filter(|d| d.rounds > 0).map(|dialogue| f64::from(dialogue.rounds)).collect();
    ColumnStatistics {
        column,
        tasks,
        mean: contender.value,
        contender,
        estimate,
        dialogues: dialogues.len() as u64,
        rounds: mean(&rounds),
        prompt_tokens: whole(dialogues, |dialogue| dialogue.prompt_tokens),
        completion_tokens: whole(dialogues, |dialogue| dialogue.completion_tokens),
        seconds: dialogues.iter().map(|dialogue| dialogue.seconds).sum(),
        usage: usage(
            dialogues,
            all.setup(column).map_or_else(ModelUsage::default, |setup| setup.thrown_away),
        ),
        gain: mean(&first).zip(mean(&last)),
    }
}

fn whole(dialogues: &[&ReportedDialogue], of: impl Fn(&ReportedDialogue) -> Option<u64>) -> Option<u64> {
    tokens_of_all(dialogues.iter().map(|dialogue| of(dialogue))).filter(|_| !dialogues.is_empty())
}

/// What dialogues used, beside what was thrown away. Those of which a server did not count all tokens are counted, and in no sum.
fn usage(dialogues: &[&ReportedDialogue], thrown_away: ModelUsage) -> ModelUsage {
    let mut usage = thrown_away;
    for dialogue in dialogues.iter().filter(|dialogue| dialogue.rounds > 0) {
        usage.dialogues += 1;
        match dialogue.prompt_tokens.zip(dialogue.completion_tokens) {
            None => usage.uncounted += 1,
            Some((prompt_tokens, completion_tokens)) => {
                let cached_tokens = dialogue.cached_tokens;
                usage +=
                    &ModelUsage { prompt_tokens, cached_tokens, completion_tokens, ..ModelUsage::default() };
            }
        }
    }
    usage
}

/// The first answer's score and the best one's, for tasks whose headline is the best of several answers.
pub fn gain(all: &Dialogues, dialogue: &ReportedDialogue) -> Option<(f64, f64)> {
    let score = all.tasks[dialogue.task].headline.strip_prefix("max.")?;
    Some((all.score(dialogue, &format!("0.{score}"))?, dialogue.headline?))
}

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
    use crate::dialogues::testing::{entry, matrix};

    #[test]
    fn a_cell_counts_what_is_missing() {
        let mut all = matrix(&["m"], &["t"], 10, |_, _, n| f64::from(n % 2));
        all.plan(0, 0, 12);
        let empty = domain::Scores::new();
        all.add(entry(0, 0, 10), "c", Ok(&empty));
        let found = statistics(&all);
        let [cell] = found else { panic!("{found:?}") };
        let summary = cell.summary.unwrap();
        assert_eq!((cell.planned, summary.n, summary.mean), (12, 10, 0.5));
        assert_eq!(cell.unscored, [("no-scores-recorded".to_owned(), 1)]);
        assert!((cell.unscored_share() - 2.0 / 12.0).abs() < 1e-12);
        assert_eq!((cell.rounds, cell.seconds), (Some(1.0), Some(1.5)));
    }

    #[test]
    fn tasks_count_the_same_in_the_total() {
        let mut all = matrix(&["m"], &["s"], 4, |_, _, _| 1.0);
        let task = all.task("t", "RdfFriendCount", &["f1"]);
        let zero = serde_json::json!({ "f1": 0.0 });
        all.add(entry(0, task, 0), "c", Ok(zero.as_object().unwrap()));
        let total = &totals(&all)[0];
        assert_eq!((total.mean, total.tasks, total.contender.covered), (Some(0.5), 2, 5));
        assert_eq!(totals(&Dialogues::default()), []);
        assert_eq!(statistics(&Dialogues::default()), []);
    }

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

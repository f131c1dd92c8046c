//! A model on a task, summed up.

use domain::{ModelUsage, tokens_of_all};

use super::mean_of_tasks::{MeanOfTasks, TaskScores};
use crate::dialogues::{ColumnId, Dialogues, ReportedDialogue, TaskId, count_reasons};
use crate::stats::SampleSummary;
use crate::stats::describe::mean;
use crate::stats::{TaskValues, ValueRange, estimate};
use crate::summaries::{CellStatistics, ColumnStatistics};

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
        planned: contender.planned,
        scored: contender.covered,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::{entry, matrix};

    #[test]
    fn a_cell_counts_what_is_missing() {
        let mut all = matrix(&["m"], &["t"], 10, |_, _, n| f64::from(n % 2));
        all.plan(0, 0, 12);
        let empty = domain::Scores::new();
        all.add(entry(0, 0, 10, &empty));
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
        all.add(entry(0, task, 0, zero.as_object().unwrap()));
        let total = &totals(&all)[0];
        assert_eq!((total.mean, total.tasks, total.scored), (Some(0.5), 2, 5));
        assert_eq!(totals(&Dialogues::default()), []);
        assert_eq!(statistics(&Dialogues::default()), []);
    }
}

//! Two models, or one model in two runs, dialogue by dialogue.
//!
//! Dialogues with the same [`QuestionKey`] were asked the same, so their scores are compared as pairs. Interval and p
//! are of the difference that is shown, by one [estimate]: over several tasks, of the mean of their differences.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::dialogues::{ColumnId, Dialogues, ReportedDialogue, TaskId};
use crate::stats::samples::{mean, variance};
use crate::stats::{Estimate, TaskValues, ValueRange, Wilcoxon, estimate, holm, wilcoxon};
use crate::table::{Cell, Table};

/// The least number of differences whose ranks can give a p below 0.05.
const RANKED_MIN: usize = 6;

/// Pairs of one task, or of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    /// Pairs with a score on both sides.
    pub n: usize,
    /// Dialogues with a score on one side only.
    pub unpaired: usize,
    /// Means of both sides over the pairs; of all tasks, the means of the tasks' means.
    pub means: Option<(f64, f64)>,
    /// Second less first.
    pub difference: Option<f64>,
    /// How sure the difference is; `None` of fewer than two pairs.
    pub estimate: Option<Estimate>,
    /// Of the mean differences of exercises; `None` of fewer than [`RANKED_MIN`] that are not zero.
    pub ranks: Option<Wilcoxon>,
    /// The difference in units of the deviation of differences within a task.
    pub effect: Option<f64>,
    /// P corrected by Holm for all tasks.
    pub corrected: Option<f64>,
}

/// A comparison, task by task and over all.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub tasks: Vec<(TaskId, Pairs)>,
    pub all: Pairs,
}

/// The scores of both sides on a question.
type Pair = (QuestionKey, f64, f64);

/// Compares two columns on the tasks that both have.
pub fn compare(all: &Dialogues, a: ColumnId, b: ColumnId) -> Comparison {
    let (first, second) = (Answers::of(all, a), Answers::of(all, b));
    let (mut every, mut tasks, mut unpaired): (Vec<Vec<Pair>>, _, _) = (Vec::new(), Vec::new(), 0);
    for task in 0..all.tasks.len() {
        let number = first.number(task) + second.number(task);
        if first.number(task) == 0 || second.number(task) == 0 {
            continue;
        }
        let pairs: Vec<Pair> = first.paired(&second, task).collect();
        let single = number - 2 * pairs.len();
        tasks.push((task, sum_up(std::slice::from_ref(&pairs), single)));
        unpaired += single;
        every.push(pairs);
    }
    let corrected = holm(tasks.iter().map(|(_, pairs)| pairs.estimate.map(|estimate| estimate.p)));
    tasks.iter_mut().zip(corrected).for_each(|((_, pairs), p)| pairs.corrected = p);
    Comparison { tasks, all: sum_up(&every, unpaired) }
}

/// Sums up the pairs of tasks, each of which counts the same.
fn sum_up(tasks: &[Vec<Pair>], unpaired: usize) -> Pairs {
    let tasks: Vec<&Vec<Pair>> = tasks.iter().filter(|pairs| !pairs.is_empty()).collect();
    let over_tasks = |of: &dyn Fn(&Pair) -> f64| {
        let of_task = |pairs: &&Vec<Pair>| mean(&pairs.iter().map(of).collect::<Vec<_>>());
        mean(&tasks.iter().filter_map(of_task).collect::<Vec<_>>())
    };
    let means = over_tasks(&|pair| pair.1).zip(over_tasks(&|pair| pair.2));
    let difference = means.map(|(a, b)| b - a);
    let differences =
        |pairs: &&Vec<Pair>| pairs.iter().map(|(question, a, b)| (question.case, b - a)).collect::<Vec<_>>();
    let strata: Vec<TaskValues> =
        tasks.iter().map(|pairs| TaskValues { weight: 1.0, values: differences(pairs) }).collect();
    let of_exercises: Vec<f64> = strata.iter().flat_map(|task| means_of_exercises(&task.values)).collect();
    let variances = strata.iter().filter_map(|task| {
        variance(&task.values.iter().map(|(_, difference)| *difference).collect::<Vec<_>>())
    });
    let within = mean(&variances.collect::<Vec<_>>());
    Pairs {
        n: strata.iter().map(|task| task.values.len()).sum(),
        unpaired,
        means,
        difference,
        estimate: estimate(&strata, ValueRange::DIFFERENCE),
        ranks: wilcoxon(&of_exercises).filter(|ranks| ranks.n >= RANKED_MIN),
        effect: difference
            .zip(within)
            .and_then(|(difference, within)| crate::stats::samples::in_deviations(difference, within)),
        corrected: None,
    }
}

/// The mean of each exercise. The values come exercise by exercise.
fn means_of_exercises(values: &[(u32, f64)]) -> Vec<f64> {
    let of_exercise =
        |values: &[(u32, f64)]| values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64;
    values.chunk_by(|a, b| a.0 == b.0).map(of_exercise).collect()
}

/// What was asked within a task: the case, and how often it had come before. Equal questions of two models are a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionKey {
    pub case: u32,
    pub turn: u32,
}

/// The dialogues of a model on a task with their questions, in the order in which they were asked.
pub fn asked(all: &Dialogues, column: ColumnId, task: TaskId) -> Vec<(QuestionKey, &ReportedDialogue)> {
    let mut dialogues: Vec<&ReportedDialogue> = all.of(column, task).collect();
    dialogues.sort_by_key(|dialogue| dialogue.iteration);
    let mut turns: HashMap<u32, u32> = HashMap::new();
    let question = |dialogue: &ReportedDialogue| {
        let turn = turns.entry(dialogue.case).or_default();
        *turn += 1;
        QuestionKey { case: dialogue.case, turn: *turn - 1 }
    };
    let questions: Vec<QuestionKey> = dialogues.iter().copied().map(question).collect();
    questions.into_iter().zip(dialogues).collect()
}

/// The headline scores of a model: of each task those of its questions, in the order of the questions.
#[derive(Clone, Debug)]
pub struct Answers(Vec<Vec<(QuestionKey, f64)>>);

impl Answers {
    pub fn of(all: &Dialogues, column: ColumnId) -> Self {
        let of_task = |task: TaskId| {
            let scored = asked(all, column, task).into_iter();
            let mut scored: Vec<(QuestionKey, f64)> =
                scored.filter_map(|(question, dialogue)| Some((question, dialogue.headline?))).collect();
            scored.sort_by_key(|(question, _)| *question);
            scored
        };
        Self((0..all.tasks.len()).map(of_task).collect())
    }

    /// How many questions of a task have a score.
    pub fn number(&self, task: TaskId) -> usize {
        self.0[task].len()
    }

    /// The questions of a task that both answered, with both scores, in the order of the questions.
    pub fn paired(&self, other: &Self, task: TaskId) -> impl Iterator<Item = (QuestionKey, f64, f64)> {
        let (mut ours, mut theirs) = (self.0[task].iter().peekable(), other.0[task].iter().peekable());
        std::iter::from_fn(move || {
            loop {
                let (a, b) = (*ours.peek()?, *theirs.peek()?);
                match a.0.cmp(&b.0) {
                    Ordering::Less => _ = ours.next(),
                    Ordering::Greater => _ = theirs.next(),
                    Ordering::Equal => {
                        ours.next();
                        theirs.next();
                        return Some((a.0, a.1, b.1));
                    }
                }
            }
        })
    }
}

/// A comparison with the names of both sides, first and second.
pub struct Compared<'a> {
    pub names: (&'a str, &'a str),
    pub found: Comparison,
}

impl Compared<'_> {
    /// The title of its table.
    pub fn title(&self) -> String {
        format!("{} against {}", self.names.1, self.names.0)
    }
}

/// The columns of every task after its name, number of pairs and means.
const FOUND: [&str; 8] = ["difference", "low", "high", "p", "p Holm", "p Wilcoxon", "effect", "unpaired"];

/// The table for people: one row per task and one for all.
pub fn table(all: &Dialogues, compared: &Compared<'_>) -> Table {
    let means = [compared.names.0, compared.names.1];
    let columns = Table::default().left(["task"]).right(["pairs"]).right(means).right(FOUND);
    let mut table = columns.titled(compared.title());
    for (task, pairs) in &compared.found.tasks {
        table.row(row(&all.tasks[*task].label, pairs));
    }
    table.total(row("all tasks", &compared.found.all));
    table.notes.push(
        "Dialogues on the same question are pairs. difference: second less first, over all tasks the mean of theirs; low, \
         high, p: its 95 % interval and test, for these tasks with other exercises; effect: in units of the deviation of \
         differences within a task."
            .to_owned(),
    );
    if let Some(note) = of_single(compared.found.all.estimate) {
        table.notes.push(note);
    }
    table
}

/// The table for programs: all comparisons in one table, the models in columns of their own, including the rows over
/// all tasks.
pub fn long(all: &Dialogues, compared: &[Compared<'_>]) -> Table {
    let columns = Table::default().left(["first", "second", "task"]);
    let columns = columns.right(["pairs", "mean first", "mean second"]).right(FOUND);
    let mut table = columns.titled("Comparisons");
    for Compared { names, found } in compared {
        let tasks = found.tasks.iter().map(|(task, pairs)| (all.tasks[*task].label.as_str(), pairs));
        for (task, pairs) in tasks.chain([("all tasks", &found.all)]) {
            table.row([Cell::from(names.0), Cell::from(names.1)].into_iter().chain(row(task, pairs)));
        }
    }
    table
}

/// What an interval over several tasks does not speak of.
pub(crate) fn of_single(estimate: Option<Estimate>) -> Option<String> {
    let single = estimate?.single;
    (single > 0).then(|| {
        format!("{single} tasks have one exercise: for these, intervals speak of other answers to it.")
    })
}

fn row(name: &str, pairs: &Pairs) -> Vec<Cell> {
    vec![
        Cell::from(name),
        Cell::Count(pairs.n as u64),
        Cell::number(pairs.means.map(|means| means.0), 3),
        Cell::number(pairs.means.map(|means| means.1), 3),
        Cell::number(pairs.difference, 3),
        Cell::number(pairs.estimate.map(|estimate| estimate.interval.low), 3),
        Cell::number(pairs.estimate.map(|estimate| estimate.interval.high), 3),
        Cell::p(pairs.estimate.map(|estimate| estimate.p)),
        Cell::p(pairs.corrected),
        Cell::p(pairs.ranks.map(|ranks| ranks.p)),
        Cell::number(pairs.effect, 2),
        Cell::Count(pairs.unpaired as u64),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::{entry, matrix};

    #[test]
    fn pairs_are_of_the_same_case_and_turn() {
        let all = matrix(&["a", "b"], &["s", "t"], 20, |model, task, n| {
            // The second model is better by a tenth on one task, and the cases differ much more than that.
            f64::from(n % 5) / 5.0
                + if model == 1 && task == 0 { 0.1 + f64::from(n % 3) / 1000.0 } else { 0.0 }
        });
        let found = compare(&all, 0, 1);
        assert_eq!((found.tasks.len(), found.all.n, found.all.unpaired), (2, 40, 0));
        let better = &found.tasks[0].1;
        assert!(better.estimate.unwrap().mean > 0.1 && better.corrected.is_some());
        let equal = &found.tasks[1].1;
        assert_eq!((equal.difference, equal.ranks, equal.effect), (Some(0.0), None, None));
        assert!(equal.estimate.unwrap().p > 0.99);
        // Each task counts the same, and interval and p are of that number.
        let difference = found.all.difference.unwrap();
        assert!((difference - better.difference.unwrap() / 2.0).abs() < 1e-12);
        assert!((found.all.estimate.unwrap().mean - difference).abs() < 1e-12);
        let back = compare(&all, 1, 0);
        assert!((back.all.difference.unwrap() + found.all.difference.unwrap()).abs() < 1e-12);
    }

    /// The second model loses 0.2 on every third task; the tasks and their cases differ by much more than that.
    fn with_loss(tasks: usize) -> Comparison {
        let labels: Vec<String> = (0..tasks).map(|task| format!("t{task}")).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let all = matrix(&["a", "b"], &labels, 20, |model, task, n| {
            let score = 0.3 + 0.6 * task as f64 / tasks as f64 + f64::from(n % 5) / 50.0;
            if model == 1 && task % 3 == 0 { score - 0.2 } else { score }
        });
        compare(&all, 0, 1)
    }

    #[test]
    fn a_certain_loss_on_a_third_of_the_tasks_is_certain_over_all() {
        let found = with_loss(27).all;
        let interval = found.estimate.unwrap().interval;
        assert!(interval.low < -0.066 && interval.high < -0.03, "{found:?}");
        assert!(found.estimate.unwrap().p < 1e-4);
        // With few tasks of five exercises, others might tell another story; how many would decide it is said.
        let few = with_loss(3).all.estimate.unwrap();
        assert!(few.interval.high > -0.01 && few.need(0.01).is_some(), "{few:?}");
    }

    #[test]
    fn missing_dialogues_are_counted_and_missing_tasks_left_out() {
        let mut all = matrix(&["a", "b"], &["s"], 10, |_, _, n| f64::from(n) / 10.0);
        let task = all.task("only-a", "RdfFriendCount", &["f1"]);
        let scores = serde_json::json!({ "f1": 1.0 });
        all.add(entry(0, task, 0), "c", Ok(scores.as_object().unwrap()));
        all.add(entry(0, 0, 10), "c", Ok(scores.as_object().unwrap()));
        let found = compare(&all, 0, 1);
        assert_eq!((found.tasks.len(), found.all.n, found.all.unpaired), (1, 10, 1));
        assert_eq!(compare(&all, 0, 0).all.difference, Some(0.0));
    }

    #[test]
    fn questions_are_paired_by_case_and_turn() {
        let all = matrix(&["a", "b"], &["t"], 10, |model, _, n| f64::from(n) / 10.0 + model as f64 / 100.0);
        let some = matrix(&["a"], &["t"], 7, |_, _, n| f64::from(n) / 10.0);
        let (a, b) = (Answers::of(&all, 0), Answers::of(&all, 1));
        let pairs: Vec<(QuestionKey, f64, f64)> = a.paired(&b, 0).collect();
        assert_eq!((pairs.len(), pairs[1].0), (10, QuestionKey { case: 0, turn: 1 }));
        assert!(pairs.iter().all(|(_, a, b)| (b - a - 0.01).abs() < 1e-12));
        // Seven of ten: the last three cases were asked once there.
        assert_eq!(Answers::of(&some, 0).paired(&a, 0).count(), 7);
    }

    #[test]
    fn programs_get_all_pairs_in_one_table() {
        let all =
            matrix(&["a", "b", "c"], &["s", "t"], 5, |model, _, n| (model as f64 + f64::from(n)) / 10.0);
        let pair = |a, b, names| Compared { names, found: compare(&all, a, b) };
        let table = long(&all, &[pair(0, 1, ("a", "b")), pair(0, 2, ("a", "c"))]);
        let rows: Vec<Vec<String>> =
            table.rows().iter().map(|row| row[..7].iter().map(Cell::shown).collect()).collect();
        assert_eq!(rows.len(), 2 * 3);
        assert_eq!(rows[2], ["a", "b", "all tasks", "10", "0.200", "0.300", "0.100"]);
        assert_eq!(rows[3][..3], ["a", "c", "s"]);
    }
}

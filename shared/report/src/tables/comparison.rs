//! Two models side by side.

use crate::analysis::compare::{Comparison, Pairs};
use crate::dialogues::Dialogues;
use crate::stats::Estimate;
use crate::table::{Cell, Table};

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
    use crate::analysis::compare::compare;
    use crate::dialogues::testing::matrix;

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

//! Two models side by side.

use crate::analysis::compare::{Comparison, Pairs};
use crate::dialogues::Dialogues;
use crate::table::{Align, Cell, Table};

/// One row per task and one for all.
pub fn table(all: &Dialogues, found: &Comparison, names: (&str, &str)) -> Table {
    let mut table = Table::new(&[("task", Align::Left), ("pairs", Align::Right)]);
    table.title = format!("{} against {}", names.1, names.0);
    for name in [names.0, names.1] {
        table.column(name, Align::Right, None);
    }
    for name in ["difference", "low", "high", "p", "p Holm", "p Wilcoxon", "effect", "unpaired"] {
        table.column(name, Align::Right, None);
    }
    for (task, pairs) in &found.tasks {
        table.row(row(&all.tasks[*task].label, pairs));
    }
    table.total(row("all tasks", &found.all));
    table.notes.push(
        "Dialogues on the same question are pairs. difference: second less first; low, high: its 95 % bootstrap interval, \
         cases drawn; p: paired t test; effect: mean difference in units of its deviation."
            .to_owned(),
    );
    table
}

fn row(name: &str, pairs: &Pairs) -> Vec<Cell> {
    vec![
        Cell::from(name),
        Cell::Count(pairs.n as u64),
        Cell::number(pairs.means.map(|means| means.0), 3),
        Cell::number(pairs.means.map(|means| means.1), 3),
        Cell::number(pairs.difference, 3),
        Cell::number(pairs.interval.map(|interval| interval.low), 3),
        Cell::number(pairs.interval.map(|interval| interval.high), 3),
        Cell::p(pairs.test.map(|test| test.p)),
        Cell::p(pairs.corrected),
        Cell::p(pairs.ranks.map(|ranks| ranks.p)),
        Cell::number(pairs.effect, 2),
        Cell::Count(pairs.unpaired as u64),
    ]
}

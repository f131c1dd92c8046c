//! Which answers were cut, are empty or were refused, and which prompts servers cut: by model and task.

use domain::{Oddities, Oddity};

use crate::dialogues::{ColumnId, Dialogues};
use crate::table::{Cell, Table};
use crate::views::View;

/// See [`table`].
pub static VIEW: View = View {
    name: "cut",
    about: "Answers that were cut, are empty or were refused by a filter, and prompts that servers cut, by model and task",
    table: |all, options| options.order.of(table(all, options.is_for_programs)),
};

/// The share of a model's answered dialogues above which what is odd about them is the first to be told.
const SHARE_TOLD_MIN: f64 = 0.01;

/// Lines that are told at most; tables have the rest.
const TOLD_MAX: usize = 8;

/// One row per model and task with answers; without `every`, only where some are odd.
pub fn table(all: &Dialogues, every: bool) -> Table {
    let mut table = Table::default()
        .left(["model", "task"])
        .right(["answered"])
        .right(Oddity::ALL.map(Oddity::as_str))
        .titled("Cut, empty and refused answers");
    let headings = all.headings();
    let mut left_out = 0;
    for (column, heading) in headings.iter().enumerate() {
        for (task, of_task) in all.tasks.iter().enumerate() {
            let answered = || all.of(column, task).filter(|dialogue| dialogue.rounds > 0);
            let odd = Oddities::count(answered().map(|dialogue| dialogue.odd));
            let dialogues = answered().count() as u64;
            if dialogues == 0 || (odd.is_empty() && !every) {
                left_out += usize::from(dialogues > 0);
                continue;
            }
            let head = [Cell::from(heading.as_str()), of_task.label.as_str().into(), Cell::Count(dialogues)];
            let of = |oddity| odd.iter().find(|(of, _)| *of == oddity).map_or(0, |(_, count)| *count);
            table.row(head.into_iter().chain(Oddity::ALL.map(of).map(Cell::Count)));
        }
    }
    if left_out > 0 {
        table.notes.push(format!("Left out: {left_out} pairs of a model and a task without any of these."));
    }
    table.notes.push(ABOUT.to_owned());
    table
}

/// What the columns say.
const ABOUT: &str = "Numbers of dialogues. cut: by the limit of tokens, often in the middle of reasoning; prompt-cut: the server counted \
                     fewer tokens than the prompt can have. `kgfleet show --cut` names them.";

/// What is odd about more of a model's answers than 1 of 100, the largest shares first.
pub fn told(all: &Dialogues) -> Vec<String> {
    let headings = all.headings();
    let of_model = |column: ColumnId| {
        let of_column = (0..all.tasks.len()).flat_map(|task| all.of(column, task));
        let odd: Vec<Oddities> =
            of_column.filter(|dialogue| dialogue.rounds > 0).map(|dialogue| dialogue.odd).collect();
        let answered = odd.len() as u64;
        let counts = Oddities::count(odd).into_iter();
        counts.map(move |(oddity, count)| (column, oddity, count, answered))
    };
    let mut found: Vec<_> = (0..all.columns.len()).flat_map(of_model).collect();
    let share = |count: u64, answered: u64| count as f64 / answered as f64;
    found.retain(|(_, _, count, answered)| share(*count, *answered) > SHARE_TOLD_MIN);
    found.sort_by(|a, b| share(b.2, b.3).total_cmp(&share(a.2, a.3)));
    let told = |(column, oddity, count, answered): (ColumnId, Oddity, u64, u64)| {
        format!("{}: {}", headings[column], oddity.told(count, answered))
    };
    let more = found.len().saturating_sub(TOLD_MAX);
    let more = (more > 0).then(|| format!("{more} more lines like these are in the table below."));
    found.into_iter().take(TOLD_MAX).map(told).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::ReportedDialogue;
    use crate::dialogues::testing::{entry, matrix};

    #[test]
    fn who_has_cut_answers_is_told_and_more_than_one_of_a_hundred_first() {
        let mut all = matrix(&["whole", "cut"], &["s", "t"], 99, |_, _, _| 0.5);
        assert_eq!((told(&all), table(&all, false).rows().len()), (Vec::new(), 0));
        assert_eq!(table(&all, true).rows().len(), 4);
        let scores = domain::Scores::new();
        let odd: Oddities = [Oddity::Cut, Oddity::Empty].into_iter().collect();
        all.add(ReportedDialogue { odd, ..entry(1, 1, 99) }, "c", Ok(&scores));
        assert!(told(&all).is_empty(), "1 of 199");
        all.add(ReportedDialogue { odd, ..entry(1, 1, 100) }, "c", Ok(&scores));
        all.add(ReportedDialogue { rounds: 0, ..entry(1, 1, 101) }, "c", Ok(&scores));
        assert!(told(&all).is_empty(), "not more than one of a hundred");
        all.add(ReportedDialogue { odd, ..entry(1, 1, 102) }, "c", Ok(&scores));
        let told = told(&all);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("cut: 3 of 201 answers were cut") && told[1].ends_with("are empty"));
        let table = table(&all, false);
        let row: Vec<String> = table.rows()[0].iter().map(Cell::shown).collect();
        assert_eq!(row, ["cut", "t", "102", "3", "3", "0", "0", "0", "0"]);
    }
}

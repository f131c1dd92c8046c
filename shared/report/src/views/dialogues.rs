//! The wide form: one row per dialogue, one column per score.

use std::collections::BTreeMap;

use crate::dialogues::Dialogues;
use crate::table::{Cell, Table};
use crate::views::View;

/// See [`wide`].
pub static VIEW: View = View {
    name: "dialogues",
    about: "The wide form: one row per dialogue, one column per score",
    table: |all, options| options.order.of(wide(all)),
};

/// Every dialogue with its headline, every score, and why there are none.
pub fn wide(all: &Dialogues) -> Table {
    // Names in the order of their first appearance.
    let mut names: Vec<&str> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, _) in all.iter().flat_map(|dialogue| all.scores(dialogue)) {
        places.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() - 1
        });
    }
    let mut table = Table::default()
        .left(["model", "exercises", "task"])
        .right(["iteration"])
        .left(["case"])
        .right(["headline"])
        .left(["not scored"])
        .right(["rounds", "prompt tokens", "answer tokens", "seconds"])
        .right(names.iter().copied())
        .titled("Dialogues");
    let headings = all.headings();
    for dialogue in all.iter() {
        let mut scores = vec![Cell::Empty; names.len()];
        for (name, value) in all.scores(dialogue) {
            if let Some(&place) = places.get(name) {
                scores[place] = Cell::Number(value, 3);
            }
        }
        let head = [
            Cell::from(headings[dialogue.column].as_str()),
            Cell::from(all.columns[dialogue.column].exercises.short()),
            Cell::from(all.tasks[dialogue.task].label.as_str()),
            Cell::Count(dialogue.iteration.into()),
            Cell::from(all.case(dialogue)),
            Cell::number(dialogue.headline, 3),
            all.reason(dialogue).map_or(Cell::Empty, Cell::from),
            Cell::Count(dialogue.rounds.into()),
            Cell::count(dialogue.prompt_tokens),
            Cell::count(dialogue.completion_tokens),
            Cell::number(dialogue.seconds, 2),
        ];
        table.row(head.into_iter().chain(scores));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::{entry, matrix};

    #[test]
    fn every_dialogue_has_a_row_and_every_score_a_column() {
        let mut all = matrix(&["m"], &["t"], 2, |_, _, n| f64::from(n));
        all.add(entry(0, 0, 2), "c", Ok(&domain::Scores::new()));
        let mut out = Vec::new();
        wide(&all).write_csv(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("seconds,f1"), "{text}");
        assert_eq!(lines[2], "m,published exercises,t,1,c1,1,,1,10,5,1.5,1");
        assert_eq!(lines[3], "m,published exercises,t,2,c,,no-scores-recorded,1,10,5,1.5,");
    }
}

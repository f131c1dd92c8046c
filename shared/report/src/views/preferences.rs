//! The tables of preferences: Turtle or JSON-LD.

use crate::analysis::preference::{FormatComparison, ModelPreferences, Pair, Preference, pairs, preferences};
use crate::dialogues::Dialogues;
use crate::table::{Cell, Table};
use crate::view::View;

/// See [`published_layout`].
pub static VIEW: View = View {
    name: "preferences",
    about: "Turtle or JSON-LD, in the layout of the published `modelPreferences.csv`",
    is_summary: true,
    table: |all, options| options.order.of(published_layout(all)),
};

/// See [`tests`].
pub static TESTS: View = View {
    name: "preference-tests",
    about: "The tests behind the preferences, with effect sizes",
    is_summary: true,
    table: |all, options| options.order.of(tests(all)),
};

/// The layout of the published `modelPreferences.csv`: a row per model, ordered by name, a column per task.
pub fn published_layout(all: &Dialogues) -> Table {
    preferred(all, "")
}

/// The same with a name for the column of models, by which a page sorts and filters.
pub fn by_model(all: &Dialogues) -> Table {
    preferred(all, "model")
}

fn preferred(all: &Dialogues, models: &str) -> Table {
    let pairs = pairs(all);
    let names = pairs.iter().map(|pair| &pair.name);
    let mut table = Table::default().left([models]).left(names).titled("Preferred format");
    for (name, found) in by_name(all, &pairs) {
        let cells = found.pairs.iter().map(|comparison| Cell::from(word(comparison.as_ref())));
        table.row([Cell::from(name)].into_iter().chain(cells));
    }
    table
}

/// One row per model and task with the test behind each preference, and one per model for all tasks together.
pub fn tests(all: &Dialogues) -> Table {
    let pairs = pairs(all);
    let mut table = Table::default()
        .left(["model", "task", "score", "preference"])
        .right(["n Turtle", "n JSON-LD", "difference", "low", "high"])
        .right(["t", "p", "p Holm", "Hedges g", "Cliff delta"])
        .titled("Tests of formats");
    for (name, found) in by_name(all, &pairs) {
        for (pair, comparison) in pairs.iter().zip(&found.pairs) {
            table.row(test_row(&name, &pair.name, &pair.score, comparison.as_ref()));
        }
        if pairs.len() > 1 {
            table.row(test_row(&name, "all tasks", "", found.all.as_ref()));
        }
    }
    table.notes.push(
        "Welch's test of all scores with Turtle against all with JSON-LD; TTL, JSON: p < 0.05, ** p < 0.01; positive \
         differences favour Turtle; Holm corrects for the tasks of one model."
            .to_owned(),
    );
    table
}

fn by_name(all: &Dialogues, pairs: &[Pair]) -> Vec<(String, ModelPreferences)> {
    let mut found: Vec<_> = all.headings().into_iter().zip(preferences(all, pairs)).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn word(comparison: Option<&FormatComparison>) -> &'static str {
    comparison.map_or(Preference::None, |found| found.preference).as_str()
}

fn test_row(model: &str, task: &str, score: &str, comparison: Option<&FormatComparison>) -> [Cell; 14] {
    let test = comparison.and_then(|found| found.test);
    let n = comparison.map(|found| found.n);
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    [
        Cell::from(model),
        Cell::from(task),
        Cell::from(score),
        Cell::from(word(comparison)),
        Cell::count(n.map(|n| n.0 as u64)),
        Cell::count(n.map(|n| n.1 as u64)),
        Cell::number(test.map(|test| test.difference), 3),
        Cell::number(test.map(|test| test.interval.0), 3),
        Cell::number(test.map(|test| test.interval.1), 3),
        Cell::number(finite(test.map(|test| test.t)), 2),
        Cell::p(test.map(|test| test.p)),
        Cell::p(comparison.and_then(|found| found.corrected)),
        Cell::number(comparison.and_then(|found| found.g), 2),
        Cell::number(comparison.and_then(|found| found.delta), 2),
    ]
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn the_file_has_the_published_layout() {
        let labels = ["RdfFriendCount-turtle-2", "RdfFriendCount-jsonld-2", "A-turtle", "A-jsonld"];
        let all = matrix(
            &["b", "a"],
            &labels,
            20,
            |_, task, n| {
                if task == 0 { 1.0 } else { f64::from(n % 2) / 2.0 }
            },
        );
        let mut out = Vec::new();
        published_layout(&all).write_csv(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), ",A,RdfFriendCount-2\na,-,**TTL**\nb,-,**TTL**\n");
        assert_eq!(tests(&all).rows().len(), 6);
    }
}

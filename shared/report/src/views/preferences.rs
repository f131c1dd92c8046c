//! The tables of preferences: Turtle or JSON-LD.

use crate::analysis::{ALPHA, ALPHA_STRONG};
use crate::dialogues::{ColumnId, Dialogues, TaskId};
use crate::stats::{TTest, TwoSamples, holm};
use crate::table::{Cell, Table};
use crate::views::View;

/// See [`published_layout`].
pub static VIEW: View = View {
    name: "preferences",
    about: "Turtle or JSON-LD, in the layout of the published `modelPreferences.csv`",
    table: |all, options| options.order.of(published_layout(all)),
};

/// See [`tests`].
pub static TESTS: View = View {
    name: "preference-tests",
    about: "The tests behind the preferences, with effect sizes",
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
    let samples = comparison.map(|found| found.samples);
    let (test, n) = (samples.and_then(|found| found.test), samples.map(|found| found.n));
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
        Cell::number(samples.and_then(|found| found.g), 2),
        Cell::number(samples.and_then(|found| found.delta), 2),
    ]
}

/// A pair of tasks that differ in the format of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The task without its format, such as `RdfFriendCount-1`.
    pub name: String,
    pub turtle: TaskId,
    pub jsonld: TaskId,
    /// The score compared.
    pub score: String,
}

/// A format, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    None,
    Turtle { strong: bool },
    JsonLd { strong: bool },
}

impl Preference {
    /// As the published table writes it: `TTL`, `**JSON**`, `-`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "-",
            Self::Turtle { strong: false } => "TTL",
            Self::Turtle { strong: true } => "**TTL**",
            Self::JsonLd { strong: false } => "JSON",
            Self::JsonLd { strong: true } => "**JSON**",
        }
    }

    fn of(test: Option<TTest>) -> Self {
        let Some(TTest { p, difference, .. }) = test.filter(|test| test.p < ALPHA) else { return Self::None };
        let strong = p < ALPHA_STRONG;
        if difference > 0.0 { Self::Turtle { strong } } else { Self::JsonLd { strong } }
    }
}

/// One comparison: Turtle first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FormatComparison {
    pub samples: TwoSamples,
    pub preference: Preference,
    /// P corrected by Holm for all comparisons of the same model.
    pub corrected: Option<f64>,
}

/// The comparisons of a model: one per pair, and all pairs together.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelPreferences {
    pub column: ColumnId,
    /// In the order of the pairs; `None` where the model has no values.
    pub pairs: Vec<Option<FormatComparison>>,
    pub all: Option<FormatComparison>,
}

/// The score that the published table is made of. The headline of most tasks; of the answer lists the strict one, because
/// the combined one gives other cells than the published ones.
fn compared(class: &str, headline: &str) -> String {
    match class {
        "Sparql2AnswerListOrganizational" | "Text2AnswerListOrganizational" => "f1".to_owned(),
        _ => headline.to_owned(),
    }
}

/// The pairs among the tasks, by name.
pub fn pairs(all: &Dialogues) -> Vec<Pair> {
    let mut found: Vec<Pair> = Vec::new();
    for (turtle, task) in all.tasks.iter().enumerate() {
        let Some(counterpart) = swap(&task.label, "turtle", "jsonld") else { continue };
        if let Some(jsonld) = all.tasks.iter().position(|other| other.label == counterpart) {
            let name = swap(&task.label, "turtle", "").unwrap_or_default().replace("--", "-");
            let name = name.trim_end_matches('-').to_owned();
            found.push(Pair { name, turtle, jsonld, score: compared(&task.class, &task.headline) });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// The label with one of its words, between hyphens, replaced by another.
fn swap(label: &str, word: &str, by: &str) -> Option<String> {
    let words: Vec<&str> = label.split('-').collect();
    words.contains(&word).then(|| {
        words.iter().map(|found| if *found == word { by } else { found }).collect::<Vec<_>>().join("-")
    })
}

/// The preferences of every model.
pub fn preferences(all: &Dialogues, pairs: &[Pair]) -> Vec<ModelPreferences> {
    let cells = all.cells();
    let values = |column: ColumnId, task: TaskId, score: &str| -> Vec<f64> {
        let dialogues = cells.get(&(column, task)).into_iter().flatten();
        dialogues.filter_map(|dialogue| all.score(dialogue, score)).collect()
    };
    let of_column = |column: ColumnId| {
        let (mut turtle, mut jsonld) = (Vec::new(), Vec::new());
        let mut comparisons: Vec<Option<FormatComparison>> = Vec::new();
        for pair in pairs {
            let (a, b) = (values(column, pair.turtle, &pair.score), values(column, pair.jsonld, &pair.score));
            comparisons.push(compare(&a, &b));
            turtle.extend(a);
            jsonld.extend(b);
        }
        let p = |found: &Option<FormatComparison>| Some(found.as_ref()?.samples.test?.p);
        let corrected = holm(comparisons.iter().map(p));
        let known = comparisons.iter_mut().zip(corrected).filter_map(|(found, p)| Some((found.as_mut()?, p)));
        known.for_each(|(comparison, p)| comparison.corrected = p);
        ModelPreferences { column, pairs: comparisons, all: compare(&turtle, &jsonld) }
    };
    (0..all.columns.len()).map(of_column).collect()
}

fn compare(turtle: &[f64], jsonld: &[f64]) -> Option<FormatComparison> {
    let samples = TwoSamples::of(turtle, jsonld);
    let preference = Preference::of(samples.test);
    let is_there = samples.n.0 > 0 && samples.n.1 > 0;
    is_there.then_some(FormatComparison { samples, preference, corrected: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn formats_are_told_by_whole_words() {
        assert_eq!(swap("RdfFriendCount-turtle-1", "turtle", "jsonld").unwrap(), "RdfFriendCount-jsonld-1");
        assert_eq!(swap("TurtleErrorsStatic", "turtle", "jsonld"), None);
    }

    #[test]
    fn constants_that_differ_are_a_preference_and_equal_ones_are_none() {
        let labels = ["T-turtle-1", "T-jsonld-1", "U-turtle", "U-jsonld", "V-turtle"];
        let all = matrix(&["m"], &labels, 20, |_, task, n| match task {
            0 => 1.0,
            1 => 0.5,
            4 => f64::from(n % 2),
            _ => 0.25,
        });
        let pairs = pairs(&all);
        assert_eq!(pairs.iter().map(|pair| pair.name.as_str()).collect::<Vec<_>>(), ["T-1", "U"]);
        let found = &preferences(&all, &pairs)[0];
        let cells: Vec<&str> =
            found.pairs.iter().map(|pair| pair.as_ref().unwrap().preference.as_str()).collect();
        assert_eq!(cells, ["**TTL**", "-"]);
        assert_eq!(found.pairs[0].as_ref().unwrap().samples.delta, Some(1.0));
        assert_eq!(found.all.as_ref().unwrap().samples.n, (40, 40));
    }
}

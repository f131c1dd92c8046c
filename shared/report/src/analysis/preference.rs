//! Whether a model does better with one format of the same graph, as tables 3 (ESWC 2025) and 7 (Semantic Web Journal) of the
//! articles on LLM-KG-Bench ask.
//!
//! All scores of a model on `TASK-turtle` are compared with those on `TASK-jsonld` by Welch's test, two-sided. Below 0.05 the
//! format with the higher mean is preferred, below 0.01 strongly (`**TTL**`). Constants that differ are a sure preference,
//! equal ones are none.

use crate::analysis::{ALPHA, ALPHA_STRONG};
use crate::dialogues::{ColumnId, Dialogues, TaskId};
use crate::stats::{TTest, effect, holm, welch};

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

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct FormatComparison {
    /// Values on both sides.
    pub n: (usize, usize),
    /// `None` where there is nothing to test: too few values, or equal constants.
    pub test: Option<TTest>,
    pub preference: Preference,
    /// Hedges' g, positive for Turtle.
    pub g: Option<f64>,
    /// Cliff's delta, positive for Turtle.
    pub delta: Option<f64>,
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
        let p = |found: &Option<FormatComparison>| {
            found.as_ref().and_then(|found| found.test).map_or(f64::NAN, |test| test.p)
        };
        let corrected = holm(&comparisons.iter().map(p).collect::<Vec<_>>());
        for (comparison, p) in comparisons.iter_mut().zip(corrected) {
            if let Some(comparison) = comparison {
                comparison.corrected = Some(p).filter(|p| !p.is_nan());
            }
        }
        ModelPreferences { column, pairs: comparisons, all: compare(&turtle, &jsonld) }
    };
    (0..all.columns.len()).map(of_column).collect()
}

fn compare(turtle: &[f64], jsonld: &[f64]) -> Option<FormatComparison> {
    if turtle.is_empty() || jsonld.is_empty() {
        return None;
    }
    let test = welch(turtle, jsonld);
    Some(FormatComparison {
        n: (turtle.len(), jsonld.len()),
        test,
        preference: Preference::of(test),
        g: effect::hedges_g(turtle, jsonld),
        delta: effect::cliffs_delta(turtle, jsonld),
        corrected: None,
    })
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
        assert_eq!(found.pairs[0].as_ref().unwrap().delta, Some(1.0));
        assert_eq!(found.all.as_ref().unwrap().n, (40, 40));
    }
}

//! Whether the columns of a table are comparable: scores measured under different conditions are not.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::listed;

/// Labels that a warning lists for one condition.
const LABELS_LISTED_MAX: usize = 3;

/// A condition that scores depend on, besides the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Condition {
    /// The models that judge answers.
    Judges,
    /// How much each part of a score counts.
    Weights,
    /// The wording of prompts.
    Prompts,
    /// The exercises.
    Pack,
    /// The rules of scoring with their limits.
    Scorer,
    /// Sampling parameters.
    Sampling,
}

impl Condition {
    /// The name used in warnings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Judges => "judges",
            Self::Weights => "weights",
            Self::Prompts => "prompts",
            Self::Pack => "pack",
            Self::Scorer => "scorer version",
            Self::Sampling => "sampling",
        }
    }
}

/// The conditions under which a column was measured; unknown ones are absent. A condition with several values changed
/// within the column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions(BTreeMap<Condition, BTreeSet<String>>);

impl Conditions {
    /// Adds a value of a condition.
    pub fn with(mut self, condition: Condition, value: impl Into<String>) -> Self {
        self.add(condition, value);
        self
    }

    pub fn add(&mut self, condition: Condition, value: impl Into<String>) {
        self.0.entry(condition).or_default().insert(value.into());
    }
}

/// One warning for all columns of a table: which conditions differ, and how. `None` if the columns are comparable.
pub fn differences<'a>(columns: impl IntoIterator<Item = (&'a str, &'a Conditions)>) -> Option<String> {
    let mut groups: BTreeMap<Condition, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for (label, conditions) in columns {
        for (condition, values) in &conditions.0 {
            for value in values {
                groups.entry(*condition).or_default().entry(value.clone()).or_default().push(label);
            }
        }
    }
    groups.retain(|_, values| values.len() > 1);
    if groups.is_empty() {
        return None;
    }
    let told = groups.iter().map(|(condition, values)| {
        let values: Vec<String> = values
            .iter()
            .map(|(value, labels)| format!("{}: {value}", listed(labels.iter(), LABELS_LISTED_MAX)))
            .collect();
        format!("{} ({})", condition.as_str(), values.join("; "))
    });
    let told: Vec<String> = told.collect();
    Some(format!("the columns were not measured alike; they differ in {}", told.join(", in ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_that_differs_is_told_in_one_warning() {
        let a = Conditions::default().with(Condition::Scorer, "1").with(Condition::Sampling, "temperature 0");
        let b = Conditions::default().with(Condition::Scorer, "2").with(Condition::Sampling, "temperature 0");
        assert_eq!(differences([("a", &a), ("a2", &a)]), None);
        assert_eq!(
            differences([("a", &a), ("b", &b)]).unwrap(),
            "the columns were not measured alike; they differ in scorer version (a: 1; b: 2)"
        );
        for condition in [
            Condition::Judges,
            Condition::Weights,
            Condition::Prompts,
            Condition::Pack,
            Condition::Scorer,
            Condition::Sampling,
        ] {
            let of = |value: &str| Conditions::default().with(condition, value);
            let warning = differences([("x", &of("old")), ("y", &of("new"))]).unwrap();
            assert!(warning.contains(condition.as_str()), "{warning}");
        }
    }

    #[test]
    fn a_condition_that_changed_within_a_column_is_told_and_an_unknown_one_is_not() {
        let mixed = Conditions::default().with(Condition::Scorer, "1").with(Condition::Scorer, "2");
        assert!(differences([("a", &mixed)]).is_some());
        let known = Conditions::default().with(Condition::Judges, "j");
        assert_eq!(differences([("a", &known), ("b", &Conditions::default())]), None);
    }

    #[test]
    fn many_columns_make_no_long_warning() {
        let (odd, usual) = (
            Conditions::default().with(Condition::Pack, "p"),
            Conditions::default().with(Condition::Pack, "q"),
        );
        let labels: Vec<String> = (0..40).map(|n| format!("m{n}")).collect();
        let columns = labels.iter().map(|label| (label.as_str(), &usual)).chain([("odd", &odd)]);
        let warning = differences(columns).unwrap();
        assert!(warning.contains("m0, m1, m2 and 37 more: q"), "{warning}");
    }
}

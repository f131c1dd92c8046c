//! The lines of `--differences`.

use domain::redaction::redacted_value;
use serde::Serialize;
use serde_json::Value;

use super::compare::Leaf;
use super::replay::StepPair;

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct DifferencePlace<'a> {
    pub(super) file: &'a str,
    pub(super) record: usize,
    pub(super) model: &'a str,
    pub(super) task: &'a str,
}

#[derive(Serialize)]
pub(super) struct Difference<'a> {
    #[serde(flatten)]
    place: DifferencePlace<'a>,
    section: &'static str,
    key: String,
    recorded: Value,
    ours: Value,
}

impl<'a> Difference<'a> {
    /// A leaf that differs. With `hide`, texts, which contain parts of answers and queries, are replaced by their length.
    pub(super) fn of_leaf(place: DifferencePlace<'a>, leaf: &Leaf<'_>, hide: bool) -> Self {
        let show = |value: Option<&Value>| match value {
            None => Value::Null,
            Some(value) if hide => redacted_value(value),
            Some(value) => value.clone(),
        };
        Self {
            place,
            section: leaf.section.as_str(),
            key: leaf.path.clone(),
            recorded: show(leaf.recorded),
            ours: show(leaf.ours),
        }
    }

    /// A step that differs from the prediction.
    pub(super) fn of_step(place: DifferencePlace<'a>, round: usize, step: StepPair) -> Self {
        let (recorded, ours) = (step.recorded.into(), step.predicted.into());
        Self { place, section: "steps", key: round.to_string(), recorded, ours }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::reevaluate::compare::{LeafVerdict, ScoreSection};

    #[test]
    fn texts_of_protected_files_do_not_leak() {
        let (left, right) = (json!(["secret", 1]), json!(null));
        let leaf = Leaf {
            section: ScoreSection::Info,
            path: "0.answerSet".into(),
            recorded: Some(&left),
            ours: Some(&right),
            verdict: LeafVerdict::Different,
        };
        let place = DifferencePlace { file: "f", record: 3, model: "m", task: "t" };
        let text = |hide| serde_json::to_string(&Difference::of_leaf(place, &leaf, hide)).unwrap();
        assert!(!text(true).contains("secret"));
        assert!(text(true).contains("\"redacted_chars\":6"));
        assert!(text(false).contains("secret"));
    }
}

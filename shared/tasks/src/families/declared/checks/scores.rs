//! The scores of one check, and how precision, recall and F1 of two sets are computed for the checks that compare sets.

use std::borrow::Cow;
use std::collections::BTreeSet;

use domain::Infos;
use serde_json::Value;

/// The scores of one check.
#[derive(Debug, Default, PartialEq)]
pub(in crate::families::declared) struct CheckScores {
    pub(in crate::families::declared) main: f64,
    pub(in crate::families::declared) parts: Vec<(Cow<'static, str>, f64)>,
    pub(in crate::families::declared) infos: Infos,
    /// Whether the answer says nothing where something is expected.
    pub(in crate::families::declared) empty: bool,
}

impl CheckScores {
    pub(super) fn of(right: bool) -> Self {
        Self { main: f64::from(u8::from(right)), ..Self::default() }
    }

    pub(super) fn of_shares([precision, recall, f1]: [f64; 3]) -> Self {
        Self {
            main: f1,
            parts: vec![("precision".into(), precision), ("recall".into(), recall)],
            ..Self::default()
        }
    }

    pub(super) fn info(&mut self, name: &str, value: impl Into<Value>) {
        self.infos.insert(name.to_owned(), value.into());
    }
}

/// Precision, recall and F1 of two sets.
pub(super) fn share_scores<T: Ord>(
    found: &BTreeSet<T>,
    expected: &BTreeSet<T>,
    empty_ok: bool,
) -> CheckScores {
    let common = found.intersection(expected).count();
    CheckScores::of_shares(shares(common, found.len(), expected.len(), empty_ok))
}

/// Precision, recall and F1. Saying nothing is worth nothing, unless nothing is expected and `empty_ok`.
pub(super) fn shares(common: usize, found: usize, expected: usize, empty_ok: bool) -> [f64; 3] {
    if found == 0 || expected == 0 {
        return [f64::from(u8::from(found == expected && empty_ok)); 3];
    }
    let (precision, recall) = (common as f64 / found as f64, common as f64 / expected as f64);
    let sum = precision + recall;
    [precision, recall, if sum == 0.0 { 0.0 } else { 2.0 * precision * recall / sum }]
}

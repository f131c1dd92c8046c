//! What breaks a rule today and may go on until it is mended. Each rule has a list in the folder `allowed`, a line for each
//! exception. A test fails for what is not on its list, and for a line that is no longer needed: lists only shrink.

use std::collections::{BTreeMap, BTreeSet};

use crate::workspace::root;

/// What breaks a rule: as a line of its list, and where, as `FILE:LINE`.
#[derive(Default)]
pub struct Found(BTreeMap<String, String>);

impl Found {
    /// Adds one; of several that are the same line, the first place is told.
    pub fn add(&mut self, line: impl Into<String>, place: impl Into<String>) {
        self.0.entry(line.into()).or_insert_with(|| place.into());
    }

    /// Compares what was found with the list of the rule.
    #[track_caller]
    pub fn check(&self, rule: &str, advice: &str) {
        let list = format!("tests/it/tests/tidy/allowed/{rule}.txt");
        let text = std::fs::read_to_string(root().join(&list)).unwrap_or_default();
        let lines: Vec<&str> =
            text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        let mut problems = Vec::new();
        if !lines.is_sorted() {
            problems.push(format!("{list}: its lines are not sorted"));
        }
        let allowed: BTreeSet<&str> = lines.into_iter().collect();
        for (line, place) in &self.0 {
            if !allowed.contains(line.as_str()) {
                problems.push(format!("{place}: `{line}`: {advice}"));
            }
        }
        for line in allowed {
            if !self.0.contains_key(line) {
                problems.push(format!("{list}: `{line}` is no longer needed: delete the line"));
            }
        }
        assert!(problems.is_empty(), "{rule}:\n{}", problems.join("\n"));
    }
}

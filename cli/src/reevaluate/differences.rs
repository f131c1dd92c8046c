//! Writes differences as JSON lines.

use std::io::{self, Write};

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
struct Line<'a> {
    #[serde(flatten)]
    place: DifferencePlace<'a>,
    section: &'static str,
    key: &'a str,
    recorded: Value,
    ours: Value,
}

/// Writes differences. Texts of protected files, which contain parts of answers and queries, are replaced by their length
/// unless `--plaintext` was given.
pub(super) struct Differences<W> {
    writer: W,
    plaintext: bool,
}

impl<W: Write> Differences<W> {
    pub(super) fn new(writer: W, plaintext: bool) -> Self {
        Self { writer, plaintext }
    }

    /// Writes a leaf that differs.
    pub(super) fn leaf(
        &mut self,
        place: DifferencePlace<'_>,
        protected: bool,
        leaf: &Leaf<'_>,
    ) -> io::Result<()> {
        let hide = protected && !self.plaintext;
        let show = |value: Option<&Value>| match value {
            None => Value::Null,
            Some(value) if hide => redacted_value(value),
            Some(value) => value.clone(),
        };
        self.write(&Line {
            place,
            section: leaf.section.as_str(),
            key: &leaf.path,
            recorded: show(leaf.recorded),
            ours: show(leaf.ours),
        })
    }

    /// Writes a step that differs from the prediction.
    pub(super) fn step(
        &mut self,
        place: DifferencePlace<'_>,
        round: usize,
        step: StepPair,
    ) -> io::Result<()> {
        let (recorded, ours) = (step.recorded.as_str(), step.predicted.as_str());
        let key = round.to_string();
        self.write(&Line { place, section: "steps", key: &key, recorded: recorded.into(), ours: ours.into() })
    }

    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.writer, line)?;
        self.writer.write_all(b"\n")
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
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
        let text = |protected: bool, plaintext: bool| {
            let mut out = Vec::new();
            let mut differences = Differences::new(&mut out, plaintext);
            differences.leaf(place, protected, &leaf).unwrap();
            differences.finish().unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(!text(true, false).contains("secret"));
        assert!(text(true, false).contains("\"redacted_chars\":6"));
        assert!(text(true, true).contains("secret"));
        assert!(text(false, false).contains("secret"));
    }
}

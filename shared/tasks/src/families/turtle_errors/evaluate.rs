//! Judges one answer.

use domain::{Infos, Scores};
use rdf::{NormalForm, normal_lines, normal_text};
use serde_json::Value;

use super::TurtleErrors;
use crate::compared::{ComparedPart, text_of};
use crate::exercise::{Effort, Verdict};
use crate::families::readable_turtle;
use crate::text::difflib::ratio;
use crate::text::python::{is_space, splitlines, strip};
use crate::text::unified_diff::unified_diff;

impl TurtleErrors {
    pub(super) fn evaluate(&self, answer: &str, effort: &Effort) -> Verdict {
        let (turtle, beside) = self.turtle_of(answer, effort);
        let readable = readable_turtle::read(turtle, effort);
        let lines = normal_lines(&readable.graph, NormalForm::Classic);
        let hits = lines.intersection(&self.optimal_lines).count();
        let raw = ratio(turtle, &self.optimal);

        let recall = hits as f64 / self.optimal_lines.len() as f64;
        // In published records, the constant 0 of an empty answer is an integer.
        let (precision, f1) = if hits == 0 {
            let precision = if lines.is_empty() { Value::from(0) } else { Value::from(0.0) };
            (precision, Value::from(0))
        } else {
            let precision = hits as f64 / lines.len() as f64;
            (precision.into(), (2.0 * precision * recall / (precision + recall)).into())
        };
        let mut scores = Scores::new();
        scores.insert("onlyTurtle".into(), (1.0 / (1.0 + beside as f64)).into());
        scores.insert("diffRatioRaw".into(), raw.into());
        let from_question = (raw - self.question_ratio) / (1.0 - self.question_ratio);
        scores.insert("diffRatio".into(), from_question.into());
        scores.insert("normAnswerPrecision".into(), precision);
        scores.insert("normAnswerRecall".into(), recall.into());
        scores.insert("normAnswerF1Score".into(), f1);
        scores.insert("normDiffRatio".into(), ratio(&self.optimal_text, &normal_text(&lines)).into());
        let triples = readable.graph.len();
        scores.insert("parsableTripleRatio".into(), (triples as f64 / self.optimal_triples as f64).into());

        let mut infos = Infos::new();
        infos.insert("diff".into(), unified_diff(&splitlines(&self.optimal), &splitlines(turtle)).into());
        infos.insert("diffRatioQuestion".into(), self.question_ratio.into());
        infos.insert("diffRatioEmpty".into(), 0.0.into());
        infos.insert("normAnswerCount".into(), lines.len().into());
        infos.insert("normAnswerHitCount".into(), hits.into());
        infos.insert("normAnswerMissingCount".into(), (self.optimal_lines.len() - hits).into());
        infos.insert("normAnswerFalseCount".into(), (lines.len() - hits).into());
        infos.insert("normOptimalCount".into(), self.optimal_lines.len().into());
        infos.insert("parsableTriplesCount".into(), triples.into());
        infos.insert("parsableTriples".into(), readable.ntriples().into());
        if let Some(limit) = readable.limit {
            infos.insert("evaluationLimit".into(), limit.message().into());
        }
        Verdict { scores, infos, follow_up: None, unscored: None }
    }

    /// The expected document, and the Turtle part of an answer.
    pub(super) fn compared_document(&self, answer: &str, effort: &Effort) -> ComparedPart {
        let (turtle, _) = self.turtle_of(answer, effort);
        ComparedPart::new("document", Some(self.optimal.clone()), text_of(turtle)).by_line()
    }

    /// The Turtle part of an answer, and the number of characters outside it. One that is too long has no such part.
    fn turtle_of<'a>(&self, answer: &'a str, effort: &Effort) -> (&'a str, usize) {
        let too_long = answer.len() > effort.limits.answer_bytes_max;
        let answer = strip(answer);
        if too_long { ("", chars_beside_lines(answer)) } else { self.split(answer) }
    }

    /// The Turtle part, and the number of characters outside it.
    fn split<'a>(&self, answer: &'a str) -> (&'a str, usize) {
        let Some(part) = self.turtle_part.find(answer) else { return ("", chars_beside_lines(answer)) };
        let behind = answer[part.end()..].trim_start_matches(|c| is_space(c) || c == '`');
        (part.as_str(), chars_beside_lines(&answer[..part.start()]) + chars_beside_lines(behind))
    }
}

/// Number of characters that are not line breaks.
fn chars_beside_lines(text: &str) -> usize {
    text.chars().filter(|character| *character != '\n').count()
}

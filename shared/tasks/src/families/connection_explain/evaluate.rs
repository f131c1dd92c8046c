//! Which IRIs of the path an answer names.
//!
//! Four readings, from strict to generous; each gives a precision, a recall and an F1:
//!
//! - `list`: a reference IRI at the end of a line, exactly. Anything may precede it on the line, such as a
//!   bullet; only white space may follow it. White space after an IRI is matched as part of it, as are line breaks
//!   before an empty line or the end of the text; the IRI is then no longer exact.
//! - `listTrim`: the same without that white space.
//! - `textHttp`: reference IRIs anywhere in the text.
//! - `textShort`: local names anywhere in the text, as parts of words too.
//!
//! Each correct one counts once. The first two are measured against the number of lines of the whole answer, the
//! others against all IRIs or names in the text. `lineBrevity` is the share of lines that hold an IRI.

use std::collections::BTreeSet;

use domain::{Infos, Scores};
use regex::Regex;
use serde_json::Value;

use crate::compared::{ComparedPart, lines_of};
use crate::exercise::{CaseError, Verdict};
use crate::text::python::{SPACE, WORD, is_word, splitlines, strip};

/// The reference path, prepared for judging.
pub(super) struct FoundPath {
    iris: BTreeSet<String>,
    local_names: BTreeSet<String>,
    distractors: Vec<String>,
    /// An IRI at the end of a line; group 1 is the IRI with the white space after it.
    list_line: Regex,
    /// An IRI anywhere.
    anywhere: Regex,
    precision_of_nothing: u8,
}

impl FoundPath {
    /// `precision_of_nothing` is the precision of a reading that finds nothing.
    pub(super) fn new(
        base: &str,
        iris: &[String],
        distractors: Vec<String>,
        precision_of_nothing: u8,
    ) -> Result<Self, CaseError> {
        let local_name = |iri: &String| {
            let name = iri.strip_prefix(base)?;
            (!name.is_empty() && name.chars().all(is_word)).then(|| name.to_owned())
        };
        let local_names: Option<BTreeSet<String>> = iris.iter().map(local_name).collect();
        let local_names = local_names.filter(|names| !names.is_empty()).ok_or(CaseError::Field {
            field: "referenceIris",
            expected: "IRIs, each made of `baseIri` and word characters,",
        })?;
        let pattern = |text: String| {
            Regex::new(&text).map_err(|_| CaseError::Field { field: "baseIri", expected: "short IRI" })
        };
        let base = regex::escape(base);
        Ok(Self {
            iris: iris.iter().cloned().collect(),
            local_names,
            distractors,
            list_line: pattern(format!("(?m)({base}{WORD}*{SPACE}*)$"))?,
            anywhere: pattern(format!("{base}{WORD}*"))?,
            precision_of_nothing,
        })
    }

    pub(super) fn evaluate(&self, answer: &str) -> Verdict {
        let lines = splitlines(answer).len();
        let list = self.listed(answer);
        let list_correct = self.correct(list.iter().copied());
        let list_trim_correct = self.correct(list.iter().copied().map(strip));
        let http: Vec<&str> = self.anywhere.find_iter(answer).map(|iri| iri.as_str()).collect();
        let http_correct = self.correct(http.iter().copied());
        let in_answer = |names: &mut dyn Iterator<Item = &String>| {
            names.filter(|name| answer.contains(name.as_str())).count()
        };
        let short_correct = in_answer(&mut self.local_names.iter());
        let short = short_correct + in_answer(&mut self.distractors.iter());

        let mut scores = Scores::new();
        for (reading, correct, named) in [
            ("list", list_correct, lines),
            ("listTrim", list_trim_correct, lines),
            ("textHttp", http_correct, http.len()),
            ("textShort", short_correct, short),
        ] {
            let precision = Number::share(correct, named).unwrap_or(Number::Whole(self.precision_of_nothing));
            let recall = Number::Real(correct as f64 / self.iris.len() as f64);
            scores.insert(format!("{reading}Precision"), precision.into());
            scores.insert(format!("{reading}Recall"), recall.into());
            scores.insert(format!("{reading}F1"), Number::f1(precision, recall).into());
        }
        let brevity = Number::share(list.len(), lines).unwrap_or(Number::Real(0.0));
        scores.insert("lineBrevity".into(), brevity.into());

        let mut infos = Infos::new();
        for (name, count) in [
            ("lineCount", lines),
            ("listLineCount", list.len()),
            ("listCorrectCount", list_correct),
            ("listTrimCorrectCount", list_trim_correct),
            ("textHttpCountCorrect", http_correct),
            ("textHttpCount", http.len()),
            ("textShortCountCorrect", short_correct),
            ("textShortCount", short),
        ] {
            infos.insert(name.into(), count.into());
        }
        Verdict { scores, infos, follow_up: None, unscored: None }
    }

    /// The path, and the IRIs that an answer lists by the reading `listTrim`, both in alphabetical order.
    pub(super) fn compared(&self, answer: &str) -> ComparedPart {
        let listed: BTreeSet<&str> = self.listed(answer).into_iter().map(strip).collect();
        ComparedPart::new("path", lines_of(&self.iris), lines_of(listed)).by_line()
    }

    /// The IRIs at the ends of lines, with the white space after them.
    fn listed<'a>(&self, answer: &'a str) -> Vec<&'a str> {
        let iris = self.list_line.captures_iter(answer).filter_map(|line| line.get(1));
        iris.map(|iri| iri.as_str()).collect()
    }

    /// How many of the reference IRIs are among `found`.
    fn correct<'a>(&self, found: impl Iterator<Item = &'a str>) -> usize {
        found.filter(|iri| self.iris.contains(*iri)).collect::<BTreeSet<_>>().len()
    }
}

/// A score with the number type of published records, where constants of the rule are integers.
#[derive(Clone, Copy)]
enum Number {
    Whole(u8),
    Real(f64),
}

impl Number {
    fn share(part: usize, whole: usize) -> Option<Self> {
        (whole > 0).then(|| Self::Real(part as f64 / whole as f64))
    }

    fn f1(precision: Self, recall: Self) -> Self {
        let (precision, recall) = (precision.value(), recall.value());
        let sum = precision + recall;
        if sum == 0.0 { Self::Whole(0) } else { Self::Real(2.0 * precision * recall / sum) }
    }

    fn value(self) -> f64 {
        match self {
            Self::Whole(number) => number.into(),
            Self::Real(number) => number,
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Whole(number) => number.into(),
            Number::Real(number) => number.into(),
        }
    }
}

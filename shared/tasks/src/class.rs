//! What a task class declares. Each class has a [`ClassSpec`] in the folder of its family; [`crate::families`] lists
//! all of them.

use std::ops::RangeInclusive;

use domain::{Ask, PromptKind, Scores};
use serde_json::Value;

use crate::exercise::{CaseError, CaseInput, Compat, Exercise};
use crate::graphs::GraphLibrary;

/// What all tasks of a class share, and what other parts of the program need to know about it. [`ClassSpec::new`] takes
/// what every class must say; the other fields have defaults, which few classes change.
pub struct ClassSpec {
    /// Names in result files and configurations, in documentation order, each with the versions whose scoring rules are
    /// known, the newest last. Names in papers and names of older releases are aliases of one class.
    pub names: &'static [(&'static str, &'static [&'static str])],
    /// The score that represents a dialogue in tables: a path into the scores. Empty for a class without scores.
    pub headline: &'static [&'static str],
    /// The headline of a perfect answer and of an unreadable one.
    pub marks: Marks,
    /// The scores that may lie outside [0, 1], by the last part of their path, each with its range. All other scores
    /// of the class are shares.
    pub wider: &'static [(&'static str, RangeInclusive<f64>)],
    /// The kind of question. For embedders and classifiers, the prompt is a JSON list of texts, and the answer a JSON
    /// object with what the verdict needs.
    pub asks: Ask,
    /// What an answer is expected to be.
    pub answers: AnswerForm,
    /// The follow-ups that it can send. Dialogues of a class with follow-ups are expected to take two answers.
    pub follow_ups: &'static [PromptKind],
    /// The fields of a case that hold the broken text and its repair, for classes that ask for repairs.
    pub repair: Option<Repair>,
    /// Whether its answers are replies of judges. How a reply is read depends only on class and parameters, so one
    /// evaluation process reads the replies to all cases; and a dialogue that is retried uses another sampling seed. In
    /// all other classes the answers are what is measured, and the same key always asks the same question.
    pub judges: bool,
    /// Values that only classes of LLM-KG-Bench have.
    pub published: Published,
    /// Reads a case. It parses everything in the case, so that a broken one is found before any model is asked.
    pub exercise: ReadCase,
}

impl ClassSpec {
    /// A class for chat models, with one answer and a headline from 0 to 1.
    pub const fn new(
        names: &'static [(&'static str, &'static [&'static str])],
        headline: &'static [&'static str],
        answers: AnswerForm,
        exercise: ReadCase,
    ) -> Self {
        Self {
            names,
            headline,
            marks: Marks::UNIT,
            wider: &[],
            asks: Ask::Chat,
            answers,
            follow_ups: &[],
            repair: None,
            judges: false,
            published: Published::NOTHING,
            exercise,
        }
    }

    /// The headline of a dialogue of this class; `None` where its scores have none.
    pub fn headline_of(&self, scores: &Scores) -> Option<f64> {
        let (first, rest) = self.headline.split_first()?;
        rest.iter().try_fold(scores.get(*first)?, |value, key| value.get(key))?.as_f64()
    }

    /// Checks that every number among the scores of a dialogue lies in its range.
    ///
    /// # Errors
    /// The first score that does not.
    pub fn check(&self, scores: &Scores) -> Result<(), ScoreOutOfRange> {
        scores.iter().try_for_each(|(name, value)| self.check_score(name, value))
    }

    fn check_score(&self, name: &str, value: &Value) -> Result<(), ScoreOutOfRange> {
        if let Value::Object(parts) = value {
            let checked = parts.iter().try_for_each(|(part, value)| self.check_score(part, value));
            return checked
                .map_err(|error| ScoreOutOfRange { path: format!("{name}.{}", error.path), ..error });
        }
        let Some(value) = value.as_f64() else { return Ok(()) };
        let range = self.wider.iter().find(|(wide, _)| *wide == name).map_or(&SHARE, |(_, range)| range);
        if (range.start() - ROUNDING..=range.end() + ROUNDING).contains(&value) {
            return Ok(());
        }
        Err(ScoreOutOfRange { path: name.to_owned(), value, range: range.clone() })
    }
}

/// The range of a score that is a share.
const SHARE: RangeInclusive<f64> = 0.0..=1.0;

/// How far outside its range a score may lie by rounding.
const ROUNDING: f64 = 1e-9;

/// A score that its class cannot have given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("score `{path}` is {value}, and lies outside {} to {}", range.start(), range.end())]
pub struct ScoreOutOfRange {
    /// The keys that lead to it, joined by dots.
    pub path: String,
    pub value: f64,
    pub range: RangeInclusive<f64>,
}

/// Reads a case of a class.
pub type ReadCase = fn(&CaseInput<'_>, &GraphLibrary, Compat) -> Result<Box<dyn Exercise>, CaseError>;

/// The range of the headline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marks {
    /// Of a perfect answer.
    pub full: f64,
    /// Of an unreadable one.
    pub least: f64,
}

impl Marks {
    /// 0 to 1.
    pub const UNIT: Self = Self { full: 1.0, least: 0.0 };
}

/// The form of an expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// A SPARQL query.
    Query,
    /// An RDF document.
    Document,
    /// Anything else: words, names, numbers.
    Text,
}

/// The fields of a case that ask for a repair.
#[derive(Clone, Copy, Debug)]
pub struct Repair {
    pub broken: &'static str,
    pub repaired: &'static str,
}

/// What published result files contain for a class.
#[derive(Clone, Copy, Debug, Default)]
pub struct Published {
    /// The estimated size that they state, in characters.
    pub estimated_size: Option<u64>,
    /// Keys that every case has there and that a case of a pack may lack. What is exported has them, as null.
    pub case_keys: &'static [&'static str],
    /// Scores that need a reference which was never published: they cannot be compared.
    pub incomparable: &'static [&'static str],
}

impl Published {
    /// For a class that is not from LLM-KG-Bench, or about which its files say nothing more.
    pub const NOTHING: Self = Self { estimated_size: None, case_keys: &[], incomparable: &[] };
}

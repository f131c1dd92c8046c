//! The checks of declared tasks. Each gives a main score and further ones, all from 0 to 1.

use std::sync::Arc;

use rdf::matching::MatchRule;
use rdf::shacl::ShaclShapes;
use rdf::{Graph, PrefixTable, QueryGraph, QueryLimits, TimeBudget};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::Value;

use super::answer::ReadAnswer;
use super::shapes_text::shapes_of;
use super::spec::{BlankComparison, CheckRule, CheckSpec, LiteralComparison};
use super::words;
use crate::exercise::{CaseError, Effort, EvaluationStage};
use crate::families::first_word;
use crate::text::difflib;

mod asserted;
mod compared;
mod conformity;
mod graph;
mod json_schema;
mod list;
mod rows;
mod scores;

use asserted::ReadyAssertion;
pub(super) use compared::ExtractedAnswer;
use conformity::TellingGraphs;
use json_schema::JsonSchema;
use list::ListRule;
pub use rows::{EXPECTED_COLUMNS_MAX, ResultTable};
pub(super) use scores::CheckScores;

/// Maximum size of a compiled regular expression, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A check of one case, with what it expects.
pub(super) struct CaseCheck {
    pub(super) spec: Arc<CheckSpec>,
    expected: ExpectedAnswer,
}

enum ExpectedAnswer {
    Text(String),
    Number(f64),
    List(Vec<String>),
    Table(ResultTable),
    Pattern(Regex),
    Graph(Graph),
    Asserted(Vec<ReadyAssertion>),
    Schema(JsonSchema),
    Shapes(ShaclShapes),
    Telling(TellingGraphs),
}

/// Where and how long an answer may be judged.
pub(super) struct CheckSetting<'a> {
    pub(super) graph: Option<&'a QueryGraph>,
    pub(super) prefixes: &'a PrefixTable,
    pub(super) effort: &'a Effort,
    /// The part of the answer that counts, as it was written.
    pub(super) part: &'a str,
    /// The processor time of all queries of the judgement.
    pub(super) budget: TimeBudget,
}

impl CaseCheck {
    /// Reads what a case expects of a check.
    ///
    /// # Errors
    /// It is missing, or of the wrong type.
    pub(super) fn read(
        spec: Arc<CheckSpec>,
        expected: Option<&Value>,
        prefixes: &PrefixTable,
    ) -> Result<Self, CaseError> {
        let wrong = |expected| CaseError::Field { field: "expected", expected };
        let text = || expected.and_then(Value::as_str).map(str::to_owned);
        let unusable =
            |message: &str| CaseError::Reference { field: "expected", message: message.to_owned() };
        let expected = match &spec.rule {
            CheckRule::Exact | CheckRule::Text | CheckRule::Choice { .. } | CheckRule::Similar => {
                ExpectedAnswer::Text(text().ok_or_else(|| wrong("text"))?)
            }
            CheckRule::Pattern { matches } => ExpectedAnswer::Pattern(pattern(matches)?),
            CheckRule::Number { .. } => {
                let number = expected.and_then(Value::as_f64);
                ExpectedAnswer::Number(number.ok_or_else(|| wrong("number"))?)
            }
            CheckRule::List { .. } => {
                let items = expected.and_then(Value::as_array).ok_or_else(|| wrong("list"))?;
                ExpectedAnswer::List(items.iter().map(words::item_text).collect())
            }
            CheckRule::Rows { .. } => {
                let table = expected.and_then(|expected| ResultTable::deserialize(expected).ok());
                ExpectedAnswer::Table(table.ok_or_else(|| wrong("result with columns and rows"))?)
            }
            CheckRule::Schema { schema } => ExpectedAnswer::Schema(JsonSchema::read(schema)?),
            CheckRule::Graph { .. } => {
                let document = text().ok_or_else(|| wrong("graph in Turtle"))?;
                let graph = Graph::parse_turtle_with(&document, prefixes);
                ExpectedAnswer::Graph(graph.map_err(|error| unusable(&error.to_string()))?)
            }
            CheckRule::Assert { ask, .. } => ExpectedAnswer::Asserted(asserted::read(ask, prefixes)?),
            CheckRule::Conforms { shapes, .. } => {
                let document = shapes.clone().or_else(text).ok_or_else(|| wrong("shapes in Turtle"))?;
                ExpectedAnswer::Shapes(shapes_of(&document, prefixes).map_err(|message| unusable(&message))?)
            }
            CheckRule::Shapes => {
                let graphs = expected.ok_or_else(|| wrong("`accept` and `reject`"))?;
                ExpectedAnswer::Telling(TellingGraphs::read(graphs, prefixes)?)
            }
        };
        Ok(Self { spec, expected })
    }

    /// The scores of an answer that can be read.
    pub(super) fn judge(&self, answer: &ReadAnswer, bench: &CheckSetting<'_>) -> CheckScores {
        let empty_ok = self.spec.empty_ok;
        match (&self.spec.rule, &self.expected, answer) {
            (CheckRule::Exact, ExpectedAnswer::Text(expected), ReadAnswer::Text(text)) => {
                CheckScores::of(text.trim() == expected.trim())
            }
            (CheckRule::Text, ExpectedAnswer::Text(expected), ReadAnswer::Text(text)) => {
                CheckScores::of(words::plain(text) == words::plain(expected))
            }
            (CheckRule::Pattern { .. }, ExpectedAnswer::Pattern(pattern), ReadAnswer::Text(text)) => {
                CheckScores::of(pattern.is_match(text))
            }
            (CheckRule::Choice { choices }, ExpectedAnswer::Text(expected), ReadAnswer::Text(text)) => {
                let chosen = chosen(text, choices);
                let mut scores =
                    CheckScores::of(chosen.is_some_and(|chosen| chosen.eq_ignore_ascii_case(expected)));
                scores.info("choice", chosen);
                scores
            }
            (
                CheckRule::Number { within, relative },
                ExpectedAnswer::Number(expected),
                ReadAnswer::Number(number),
            ) => {
                let mut scores =
                    CheckScores::of((number - expected).abs() <= within.max(relative * expected.abs()));
                scores.info("number", *number);
                scores
            }
            (CheckRule::List { items, ordered, partial }, ExpectedAnswer::List(expected), answer) => {
                let rule = ListRule { items: *items, ordered: *ordered, partial: *partial, empty_ok };
                match answer {
                    ReadAnswer::List(found) => list::compare(found, expected, rule, bench.prefixes),
                    ReadAnswer::Json(Value::Array(found)) => {
                        let found: Vec<String> = found.iter().map(words::item_text).collect();
                        list::compare(&found, expected, rule, bench.prefixes)
                    }
                    _ => CheckScores::default(),
                }
            }
            (CheckRule::Rows { compare }, ExpectedAnswer::Table(expected), ReadAnswer::Query(query)) => {
                match found(query, bench) {
                    Ok(found) => rows::compare(&found, expected, *compare, empty_ok),
                    Err(message) => {
                        let empty = !expected.rows.is_empty();
                        let mut scores = CheckScores { empty, ..CheckScores::of_shares([0.0; 3]) };
                        scores.info("error", message);
                        scores
                    }
                }
            }
            (
                CheckRule::Graph { literals, blank, ignore },
                ExpectedAnswer::Graph(expected),
                ReadAnswer::Graph(found),
            ) => {
                let rule = MatchRule {
                    exact_literals: *literals == LiteralComparison::Exact,
                    blank_equal: *blank == BlankComparison::Equal,
                    ignored: ignore,
                };
                graph::compare(found, expected, &rule, empty_ok, bench)
            }
            (
                CheckRule::Assert { with_graph, .. },
                ExpectedAnswer::Asserted(asked),
                ReadAnswer::Graph(found),
            ) => asserted::judge(found, asked, *with_graph, bench),
            (CheckRule::Conforms { by, .. }, ExpectedAnswer::Shapes(shapes), ReadAnswer::Graph(found)) => {
                conformity::conforms(found, shapes, *by, bench)
            }
            (CheckRule::Shapes, ExpectedAnswer::Telling(graphs), ReadAnswer::Shapes(shapes)) => {
                conformity::tell_apart(shapes, graphs, bench)
            }
            (CheckRule::Schema { .. }, ExpectedAnswer::Schema(schema), ReadAnswer::Json(value)) => {
                let violated = schema.violated_by(value);
                let mut scores = CheckScores::of(violated.is_none());
                scores.info("violated", violated);
                scores
            }
            (CheckRule::Similar, ExpectedAnswer::Text(expected), _) => CheckScores {
                main: difflib::ratio(bench.part.trim(), expected.trim()),
                ..CheckScores::default()
            },
            // A pack whose checks do not fit its answers is refused when it is compiled; from elsewhere it scores nothing.
            _ => CheckScores::default(),
        }
    }

    /// The scores of an answer that cannot be read: the same names, and nothing.
    pub(super) fn unreadable(&self) -> CheckScores {
        match (&self.spec.rule, &self.expected) {
            (CheckRule::List { .. } | CheckRule::Rows { .. } | CheckRule::Graph { .. }, _) => {
                CheckScores::of_shares([0.0; 3])
            }
            (CheckRule::Shapes, _) => conformity::of_telling(0.0, 0.0),
            (_, ExpectedAnswer::Asserted(asked)) => asserted::nothing(asked),
            _ => CheckScores::default(),
        }
    }
}

/// The choice that a text begins with.
fn chosen<'a>(text: &str, choices: &'a [String]) -> Option<&'a str> {
    first_word::of(text, choices).map(|at| choices[at].as_str())
}

fn found(query: &rdf::PreparedQuery, bench: &CheckSetting<'_>) -> Result<ResultTable, String> {
    if let EvaluationStage::WithoutExecution(limit) = bench.effort.stage {
        return Err(limit.message().to_owned());
    }
    let Some(graph) = bench.graph else { return Err("the task has no graph".to_owned()) };
    let limits = QueryLimits { deadline: bench.budget.left(), rows_max: bench.effort.limits.rows_max };
    ResultTable::of(query, graph, &limits).map_err(|error| error.to_string())
}

/// Compiles a regular expression that takes linear time.
///
/// # Errors
/// It is none, or too large.
pub fn pattern(text: &str) -> Result<Regex, CaseError> {
    let built = RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build();
    built.map_err(|error| CaseError::Reference { field: "matches", message: error.to_string() })
}

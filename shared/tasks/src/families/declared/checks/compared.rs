//! What a check expects and what it reads of an answer, for people who read a dialogue.

use domain::Infos;
use rdf::{Graph, NormalForm, PrefixTable, normal_lines};
use serde_json::Value;

use super::list::{self, ListRule};
use super::{CaseCheck, ExpectedAnswer, ResultTable, chosen};
use crate::compared::{ComparedPart, lines_of};
use crate::families::declared::answer::ReadAnswer;
use crate::families::declared::spec::CheckRule;
use crate::families::declared::words;

/// An answer as checks get it.
pub(in crate::families::declared) struct ExtractedAnswer<'a> {
    /// `None` if it cannot be read.
    pub(in crate::families::declared) read: Option<&'a ReadAnswer>,
    /// The part that counts, as it was written.
    pub(in crate::families::declared) part: Option<String>,
    /// Those of its verdict.
    pub(in crate::families::declared) infos: &'a Infos,
    pub(in crate::families::declared) prefixes: &'a PrefixTable,
}

impl CaseCheck {
    /// What the case expects, and the same of an answer. Nothing where a case expects nothing that could be written.
    pub(in crate::families::declared) fn compared(&self, answer: &ExtractedAnswer<'_>) -> Vec<ComparedPart> {
        let part = || answer.part.clone();
        let named = |expected, found| ComparedPart::new(self.spec.name.clone(), expected, found);
        match (&self.expected, &self.spec.rule, answer.read) {
            (ExpectedAnswer::Text(expected), CheckRule::Choice { choices }, Some(ReadAnswer::Text(text))) => {
                vec![named(Some(expected.clone()), chosen(text, choices).map(str::to_owned))]
            }
            (ExpectedAnswer::Text(expected), CheckRule::Exact | CheckRule::Similar, _) => {
                vec![named(Some(expected.trim().to_owned()), part()).by_line()]
            }
            (ExpectedAnswer::Text(expected), _, _) => vec![named(Some(expected.trim().to_owned()), part())],
            (ExpectedAnswer::Number(expected), _, read) => {
                let found = match read {
                    Some(ReadAnswer::Number(number)) => Some(words::number_text(*number)),
                    _ => part(),
                };
                vec![named(Some(words::number_text(*expected)), found)]
            }
            (ExpectedAnswer::List(expected), CheckRule::List { items, ordered, partial }, read) => {
                let (items, ordered, partial) = (*items, *ordered, *partial);
                let rule = ListRule { items, ordered, partial, empty_ok: self.spec.empty_ok };
                let shown = |texts: &[String]| list::shown(texts, rule, answer.prefixes);
                let both = |found: &[String]| named(shown(expected), shown(found)).by_line();
                vec![match read {
                    Some(ReadAnswer::List(found)) => both(found),
                    Some(ReadAnswer::Json(Value::Array(found))) => {
                        both(&found.iter().map(words::item_text).collect::<Vec<_>>())
                    }
                    _ => named(shown(expected), part()),
                }]
            }
            (ExpectedAnswer::Table(expected), _, _) => {
                let query = ComparedPart::new("query", None, part());
                vec![query, named(rows_text(expected), self.rows_found(answer.infos))]
            }
            (ExpectedAnswer::Graph(expected), _, Some(ReadAnswer::Graph(found))) => {
                vec![named(triples(expected), triples(found)).by_line()]
            }
            (ExpectedAnswer::Graph(expected), _, _) => vec![named(triples(expected), part())],
            (ExpectedAnswer::Pattern(pattern), _, _) => {
                vec![named(Some(format!("a text that matches {}", pattern.as_str())), part())]
            }
            (
                ExpectedAnswer::List(_)
                | ExpectedAnswer::Asserted(_)
                | ExpectedAnswer::Schema(_)
                | ExpectedAnswer::Shapes(_)
                | ExpectedAnswer::Telling(_),
                _,
                _,
            ) => Vec::new(),
        }
    }

    /// How many rows the query of an answer found, or why it found none.
    fn rows_found(&self, infos: &Infos) -> Option<String> {
        let info = |name: &str| infos.get(&format!("{}_{name}", self.spec.name));
        let number = info("found").and_then(Value::as_u64).map(|rows| format!("{rows} rows"));
        number.or_else(|| info("error").and_then(Value::as_str).map(str::to_owned))
    }
}

/// Rows one a line, their cells apart by tabs.
fn rows_text(table: &ResultTable) -> Option<String> {
    let row = |cells: &Vec<Option<String>>| {
        cells.iter().map(|cell| cell.as_deref().unwrap_or_default()).collect::<Vec<_>>().join("\t")
    };
    lines_of(table.rows.iter().map(row))
}

/// The triples of a graph, all blank nodes alike.
fn triples(graph: &Graph) -> Option<String> {
    let lines = normal_lines(graph, NormalForm::RdfSyntaxFix);
    lines_of(lines.iter().filter(|line| !line.is_empty()))
}

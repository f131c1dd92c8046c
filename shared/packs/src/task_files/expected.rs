//! Finds out what the checks of a case expect. Reference queries run once, when a file is compiled; evaluation only compares. A
//! result that is empty or depends on the order of triples is a mistake of the file, because wrong answers would be right or
//! right ones wrong.

use std::collections::HashMap;
use std::time::Duration;

use rdf::{Dialect, QueryLimits};
use serde_json::Value;
use tasks::EvaluationLimits;
use tasks::families::declared::spec::CheckRule;
use tasks::families::declared::{EXPECTED_COLUMNS_MAX, ResultTable};

use crate::task_files::field_path::plain;
use crate::task_files::graphs::FileGraph;

/// Most rows of an expected result.
const EXPECTED_ROWS_MAX: usize = 100_000;

/// Words of queries whose result may depend on the order of triples.
const ORDER_WORDS: [&str; 4] = ["LIMIT", "OFFSET", "SAMPLE", "GROUP_CONCAT"];

/// Words that reach nothing in a task file, which has no named graphs and no network.
const UNREACHABLE: [&str; 4] = ["SERVICE", "FROM", "GRAPH", "LOAD"];

/// The results of reference queries, each run once for a graph however many cases and checks share it.
#[derive(Default)]
pub(crate) struct ReferenceResults {
    known: HashMap<(String, usize), Result<ResultTable, String>>,
}

impl ReferenceResults {
    /// The result of a reference query on a graph. `empty_ok` says whether an empty one is meant.
    ///
    /// # Errors
    /// The query cannot be read or run, or its result is empty, too large, or depends on the order of triples.
    pub(crate) fn of(
        &mut self,
        query: &str,
        graph: &FileGraph,
        limits: &EvaluationLimits,
        empty_ok: bool,
    ) -> Result<ResultTable, String> {
        let key = (query.to_owned(), std::ptr::from_ref(graph).addr());
        let result = self.known.entry(key).or_insert_with(|| run(query, graph, limits.query_time));
        let table = result.clone()?;
        if table.rows.is_empty() && !empty_ok {
            return Err("the expected result is empty, so a query that finds nothing would be right; `empty_ok = true` in its `[[task.check]]` if so"
                .to_owned());
        }
        Ok(table)
    }
}

fn run(query: &str, graph: &FileGraph, time: Duration) -> Result<ResultTable, String> {
    let prepared =
        rdf::prepare(query, &graph.prefixes, Dialect::Standard).map_err(|error| match error.line {
            Some(line) => format!("line {line}: {}", error.message),
            None => error.message,
        })?;
    if let Some(word) = UNREACHABLE.iter().find(|word| has_word(query, word)) {
        return Err(format!("{word} reaches nothing here: a task has one graph and no network"));
    }
    let limits = QueryLimits { deadline: Some(time), rows_max: EXPECTED_ROWS_MAX };
    let on = |graph| ResultTable::of(&prepared, graph, &limits).map_err(|error| error.to_string());
    let table = on(&graph.indexed)?;
    if table.columns > EXPECTED_COLUMNS_MAX {
        return Err(format!(
            "the expected result has {} columns; {EXPECTED_COLUMNS_MAX} are the most",
            table.columns
        ));
    }
    if ORDER_WORDS.iter().any(|word| has_word(query, word)) && on(graph.reordered())? != table {
        return Err("the expected result depends on the order of triples (run again on a reordered graph: other rows); add a \
                    key to ORDER BY"
            .to_owned());
    }
    Ok(table)
}

fn has_word(query: &str, wanted: &str) -> bool {
    let mut words =
        query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':' && c != '?' && c != '/');
    words.any(|word| word.eq_ignore_ascii_case(wanted))
}

/// A result as what another check than `rows` expects: its first column.
pub(crate) fn of_result(rule: &CheckRule, table: &ResultTable) -> Result<Value, String> {
    let column = table.first_column();
    match (rule, column.as_slice()) {
        (CheckRule::Rows { .. }, _) => serde_json::to_value(table).map_err(|error| error.to_string()),
        (CheckRule::List { .. }, items) => Ok(items.into()),
        (_, [only]) => of_value(rule, &Value::from(only.as_str())),
        (_, several) => Err(format!("the expected result has {} rows; one is expected", several.len())),
    }
}

/// A value of a case, or a text, as what a check expects.
pub(crate) fn of_value(rule: &CheckRule, value: &Value) -> Result<Value, String> {
    match rule {
        CheckRule::Rows { .. } => {
            Err("`rows` expects the result of a query: `expect.query_field` or `expect.query`".to_owned())
        }
        CheckRule::List { .. } => match value {
            // A record is kept as text, because packs take some tables for the names of entries.
            Value::Array(items) => Ok(items
                .iter()
                .map(|item| if item.is_object() { item.to_string().into() } else { item.clone() })
                .collect()),
            // A cell of a table holds a list as lines.
            Value::String(text) => {
                Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Value::from).collect())
            }
            _ => Err("it is no list".to_owned()),
        },
        CheckRule::Number { .. } => {
            let number = value.as_f64().or_else(|| plain(value).trim().parse().ok());
            match number.filter(|number| number.is_finite()) {
                Some(number) => Ok(number.into()),
                None => Err(format!("`{}` is no number", plain(value))),
            }
        }
        CheckRule::Choice { choices } => {
            let text = plain(value);
            if choices.iter().any(|choice| choice.eq_ignore_ascii_case(text.trim())) {
                return Ok(text.trim().into());
            }
            Err(format!("`{text}` is none of the choices: {}", choices.join(", ")))
        }
        CheckRule::Graph { .. } | CheckRule::Conforms { .. } => match value {
            Value::String(_) => Ok(value.clone()),
            _ => Err("it is no document in Turtle".to_owned()),
        },
        CheckRule::Shapes | CheckRule::Schema { .. } | CheckRule::Assert { .. } => {
            Err(format!("`{}` expects no value of its own", rule.kind()))
        }
        CheckRule::Exact | CheckRule::Text | CheckRule::Pattern { .. } | CheckRule::Similar => match value {
            Value::Array(_) | Value::Object(_) => Err("it is no text".to_owned()),
            value if plain(value).trim().is_empty() => {
                Err("it is empty, and an empty answer is never right".to_owned())
            }
            value => Ok(plain(value).into()),
        },
    }
}

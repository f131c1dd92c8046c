//! Turns query text into a query that can run.
//!
//! The parser depends on the task. LLM-KG-Bench scores a query as correct if rdflib parses it, and its result is what
//! rdflib finds; queries for published tasks are read in the same way ([`super::rdflib`]). Queries for the project's own
//! tasks are read by the standard ([`super::standard`]).

use super::dialect::Dialect;
use super::execute::{self, ExecutionError, QueryAnswer, QueryGraph, QueryLimits, Solutions, Value};
use super::rdflib::{self, Refusal};
use super::standard;
use super::tokens::{TokenKind, Tokens};
use crate::prefixes::PrefixTable;
use crate::scan::{self, ScanFinding, ScanLimits};
use oxrdf::vocab;
use spargebra::Query;
use std::sync::Arc;

/// A query that counts as syntactically correct. Cloning shares it.
#[derive(Debug, Clone)]
pub struct PreparedQuery {
    plan: Plan,
    dialect: Dialect,
}

#[derive(Debug, Clone)]
enum Plan {
    /// A query, and the separators of its GROUP_CONCATs.
    Run(Arc<(Query, Vec<String>)>),
    /// An ASK, which only [`PreparedQuery::answer`] runs: published tasks score every query but SELECT as without a result.
    Ask(Arc<Query>),
    /// Parsed, but not to be evaluated.
    Fail(&'static str),
}

/// Why a text is not a SPARQL query.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct QuerySyntaxError {
    /// Message in rdflib's wording, e.g. `Expected SelectQuery, found 'FOO'  (at char 7), (line:1, col:8)`.
    pub message: String,
    /// The text at which the parser stopped; empty at the end of the text, and if unknown.
    pub unexpected: String,
    /// A prefix that is neither declared nor in the table.
    pub unknown_prefix: Option<String>,
    /// 1-based line, if known.
    pub line: Option<usize>,
    /// 1-based column in code points, if known.
    pub column: Option<usize>,
    /// Set if the query was refused for its size or nesting before it was parsed.
    pub limit: Option<ScanFinding>,
}

/// Parses a query. `prefixes` are those that the query may use undeclared; its own PREFIX lines override them.
///
/// Queries other than SELECT parse, but executing them is an [`ExecutionError::Evaluation`], as is executing a query with
/// SERVICE: nothing ever accesses the network. [`PreparedQuery::answer`] also runs an ASK read by the standard.
///
/// # Errors
/// The syntax error, or the limit of [`ScanLimits::query`] that the query exceeds.
pub fn prepare(
    text: &str,
    prefixes: &PrefixTable,
    dialect: Dialect,
) -> Result<PreparedQuery, QuerySyntaxError> {
    // The parser of rdflib puts blanks in the place of tabs, also within strings.
    let without_tabs = (dialect != Dialect::Standard && text.contains('\t')).then(|| expanded_tabs(text));
    let text = without_tabs.as_deref().unwrap_or(text);
    let expanded = rdflib::without_unicode_escapes(text, dialect != Dialect::Standard);
    let tokens = Tokens::of(expanded.as_deref().unwrap_or(text));
    scan::check_query(&tokens, &ScanLimits::query()).map_err(|finding| QuerySyntaxError {
        message: finding.to_string(),
        limit: Some(finding),
        ..QuerySyntaxError::default()
    })?;
    let plan = match (dialect, expanded.as_deref()) {
        (Dialect::Standard, _) => plan_standard(&tokens, prefixes),
        (Dialect::Rdflib | Dialect::Wikidata, None) => Err(Refusal::Grammar(0)),
        (Dialect::Rdflib | Dialect::Wikidata, Some(_)) => plan_rdflib(&tokens, prefixes, dialect),
    };
    match plan {
        Ok(plan) => Ok(PreparedQuery { plan, dialect }),
        Err(Refusal::Grammar(byte) | Refusal::NoSelect(byte)) => Err(syntax_error(&tokens, byte)),
        Err(Refusal::UnknownPrefix(prefix)) => Err(QuerySyntaxError {
            message: format!("Unknown namespace prefix : {prefix}"),
            unknown_prefix: Some(prefix),
            ..QuerySyntaxError::default()
        }),
    }
}

/// Distance between the columns to which a tab leads.
const TAB_COLUMNS: usize = 8;

fn expanded_tabs(text: &str) -> String {
    let (mut expanded, mut column) = (String::with_capacity(text.len() + 64), 0);
    for c in text.chars() {
        match c {
            '\t' => {
                let blanks = TAB_COLUMNS - column % TAB_COLUMNS;
                expanded.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            '\n' | '\r' => {
                expanded.push(c);
                column = 0;
            }
            c => {
                expanded.push(c);
                column += 1;
            }
        }
    }
    expanded
}

const SERVICE: Plan = Plan::Fail("SERVICE is not supported");
const NO_SELECT_MESSAGE: &str = "Only SELECT queries are evaluated";
const NO_SELECT: Plan = Plan::Fail(NO_SELECT_MESSAGE);

fn plan_rdflib(tokens: &Tokens<'_>, prefixes: &PrefixTable, dialect: Dialect) -> Result<Plan, Refusal> {
    match rdflib::read(tokens.source, prefixes, dialect) {
        Ok(reading) if reading.calls_service => Ok(SERVICE),
        Ok(reading) => Ok(Plan::Run(Arc::new((reading.query, reading.separators)))),
        // Other kinds of query parse and are never evaluated.
        Err(Refusal::NoSelect(_)) if is_other_query(tokens, prefixes) => Ok(NO_SELECT),
        Err(refusal) => Err(refusal),
    }
}

/// Whether it is a query other than SELECT. rdflib lets one label of a blank node stand in two groups, so each gets its own.
fn is_other_query(tokens: &Tokens<'_>, prefixes: &PrefixTable) -> bool {
    let mut text = tokens.source.to_owned();
    for (index, token) in tokens.list.iter().enumerate().rev() {
        if token.kind == TokenKind::Blank {
            text.replace_range(token.range.clone(), &format!("_:label{index}"));
        }
    }
    standard::read(&Tokens::of(&text), prefixes).is_ok_and(|query| !matches!(query, Query::Select { .. }))
}

fn plan_standard(tokens: &Tokens<'_>, prefixes: &PrefixTable) -> Result<Plan, Refusal> {
    let query = standard::read(tokens, prefixes)?;
    // SILENT would turn the refusal into one empty solution, so any SERVICE is the error.
    let calls_service = || (0..tokens.len()).any(|index| tokens.is_word(index, "SERVICE"));
    Ok(match query {
        Query::Select { .. } | Query::Ask { .. } if calls_service() => SERVICE,
        Query::Select { .. } => Plan::Run(Arc::new((query, Vec::new()))),
        Query::Ask { .. } => Plan::Ask(Arc::new(query)),
        Query::Construct { .. } | Query::Describe { .. } => NO_SELECT,
    })
}

impl PreparedQuery {
    /// Runs a SELECT.
    ///
    /// # Errors
    /// See [`ExecutionError`]. The deadline is not exact; [`super::execute`] lists what it does not stop.
    pub fn execute(&self, graph: &QueryGraph, limits: &QueryLimits) -> Result<Solutions, ExecutionError> {
        match &self.plan {
            Plan::Run(plan) => {
                let (query, separators) = &**plan;
                let mut solutions = match execute::answer(query, separators, graph, self.dialect, limits)? {
                    QueryAnswer::Rows(solutions) => solutions,
                    QueryAnswer::Truth(_) => return Err(no_select()),
                };
                if self.dialect == Dialect::Wikidata {
                    solutions.rows.iter_mut().flatten().flatten().for_each(in_time_of_the_endpoint);
                }
                Ok(solutions)
            }
            Plan::Ask(_) => Err(no_select()),
            Plan::Fail(message) => Err(ExecutionError::Evaluation((*message).to_owned())),
        }
    }

    /// Runs a SELECT or an ASK.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    pub fn answer(&self, graph: &QueryGraph, limits: &QueryLimits) -> Result<QueryAnswer, ExecutionError> {
        match &self.plan {
            Plan::Ask(query) => execute::answer(query, &[], graph, self.dialect, limits),
            Plan::Run(_) | Plan::Fail(_) => self.execute(graph, limits).map(QueryAnswer::Rows),
        }
    }
}

fn no_select() -> ExecutionError {
    ExecutionError::Evaluation(NO_SELECT_MESSAGE.to_owned())
}

/// Writes times in UTC with the letter that the endpoint writes and Python does not.
fn in_time_of_the_endpoint(value: &mut Value) {
    if let Value::Literal { lexical, datatype, .. } = value
        && datatype == vocab::xsd::DATE_TIME.as_str()
        && let Some(moment) = lexical.strip_suffix("+00:00")
    {
        *lexical = format!("{moment}Z");
    }
}

/// The error at a byte of the text, in rdflib's wording.
fn syntax_error(tokens: &Tokens<'_>, byte: usize) -> QuerySyntaxError {
    let source = tokens.source;
    // The parser may stop inside a token; rdflib names the first word or character of what it cannot read.
    let token = tokens.list.iter().find(|token| token.range.end > byte);
    let byte = token.map_or(source.len(), |token| token.range.start);
    let rest = &source[byte..];
    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let unexpected = &rest[..word.max(rest.chars().next().map_or(0, char::len_utf8))];
    let found = if unexpected.is_empty() { "end of text".to_owned() } else { format!("'{unexpected}'") };
    let before = &source[..byte];
    let at = before.chars().count();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    QuerySyntaxError {
        message: format!("Expected SelectQuery, found {found}  (at char {at}), (line:{line}, col:{column})"),
        unexpected: unexpected.to_owned(),
        unknown_prefix: None,
        line: Some(line),
        column: Some(column),
        limit: None,
    }
}

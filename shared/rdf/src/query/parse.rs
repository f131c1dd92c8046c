//! From query text to a query that can run.
//!
//! LLM-KG-Bench scores a query as correct when rdflib parses it. Oxigraph refuses some of those queries: it knows only
//! declared prefixes, and it checks already while parsing what rdflib leaves to evaluation or never checks. So the
//! text climbs a ladder: as it is with the task's prefixes; with overwriting BINDs renamed; with projections
//! repaired; and finally as a skeleton that keeps the grammar and drops the meaning. What parses only as a skeleton is
//! correct SPARQL that fails when run.

use super::bridge::{self, Rewritten};
use super::execute::{self, ExecutionError, QueryGraph, QueryLimits, Solutions};
use super::iris::declares_prefix;
use super::tokens::{TokenKind, Tokens};
use crate::graph::BASE_IRI;
use crate::prefixes::PrefixTable;
use crate::scan::{self, ScanFinding, ScanLimits};
use spargebra::{Query, SparqlParser};
use std::collections::HashSet;
use std::sync::Arc;

/// Whose leniency a query may count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// SPARQL 1.1 as rdflib reads it.
    Plain,
    /// The public Wikidata endpoint (Blazegraph): string functions take any literal, the label service is left out.
    Wikidata,
}

/// A query that the benchmark counts as syntactically correct. Cloning shares it.
#[derive(Debug, Clone)]
pub struct PreparedQuery {
    plan: Plan,
    /// Renamed variables as (fresh, original) names.
    renamed: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
enum Plan {
    Run(Arc<Query>),
    /// Parsed, but rdflib or the benchmark cannot evaluate it.
    Fail(String),
}

/// Why a text is not a SPARQL query.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct QuerySyntaxError {
    /// Message in rdflib's wording, e.g. `Expected SelectQuery, found 'FOO'  (at char 7), (line:1, col:8)`.
    pub message: String,
    /// The text found where something else was expected; empty at the end of the text and where unknown.
    pub unexpected: String,
    /// A prefix that is neither declared nor in the table.
    pub unknown_prefix: Option<String>,
    /// 1-based line, where known.
    pub line: Option<usize>,
    /// 1-based column in code points, where known.
    pub column: Option<usize>,
    /// Set when the query was refused for its size or nesting before it was parsed.
    pub limit: Option<ScanFinding>,
}

/// Most BIND renames tried on one query.
const BIND_RENAMES_MAX: usize = 16;

/// Parses a query. `prefixes` holds what the query may use undeclared; its own PREFIX lines win over that.
///
/// Queries other than SELECT are grammatical, but their execution is an [`ExecutionError::Evaluation`], and so is that
/// of queries which call a SERVICE: nothing ever touches the network.
///
/// # Errors
/// The syntax error, if rdflib would refuse the query too, or the limit of [`ScanLimits::query`] that it exceeds.
pub fn prepare(
    text: &str,
    prefixes: &PrefixTable,
    dialect: Dialect,
) -> Result<PreparedQuery, QuerySyntaxError> {
    let tokens = Tokens::of(text);
    scan::check_query(&tokens, &ScanLimits::query()).map_err(|finding| QuerySyntaxError {
        message: finding.to_string(),
        limit: Some(finding),
        ..QuerySyntaxError::default()
    })?;
    let names = Names::of(&tokens, prefixes);
    let bridged = bridge::lenient(&tokens, dialect);
    let bridged = bridged.as_deref().unwrap_or(text);
    match names.parse(bridged) {
        Ok(query) => Ok(PreparedQuery { plan: plan(query, bridged), renamed: Vec::new() }),
        Err(error) => repair(bridged, &names).map_err(|refused| match refused {
            Refused::UnknownPrefix(prefix) => QuerySyntaxError {
                message: format!("Unknown namespace prefix : {prefix}"),
                unknown_prefix: Some(prefix),
                ..QuerySyntaxError::default()
            },
            Refused::Grammar => {
                // The position must be one of the text that the caller knows.
                let error = names.parse(text).err().unwrap_or(error);
                syntax_error(&tokens, &error)
            }
        }),
    }
}

impl PreparedQuery {
    /// Runs the query.
    ///
    /// # Errors
    /// See [`ExecutionError`]. A time-out is not kept to the millisecond; see [`super::execute`] for what it cannot
    /// stop.
    pub fn execute(&self, graph: &QueryGraph, limits: &QueryLimits) -> Result<Solutions, ExecutionError> {
        let query = match &self.plan {
            Plan::Run(query) => query,
            Plan::Fail(message) => return Err(ExecutionError::Evaluation(message.clone())),
        };
        let mut solutions = execute::select(query, graph, limits)?;
        for variable in &mut solutions.variables {
            // A variable may have been renamed more than once.
            while let Some((_, original)) = self.renamed.iter().find(|(fresh, _)| fresh == variable) {
                variable.clone_from(original);
            }
        }
        Ok(solutions)
    }
}

/// Why a query stays refused.
enum Refused {
    UnknownPrefix(String),
    Grammar,
}

/// The repairs of the ladder, for a text that Oxigraph refuses.
fn repair(text: &str, names: &Names<'_>) -> Result<PreparedQuery, Refused> {
    let spelled = bridge::spelling(&Tokens::of(text));
    let mut current = Rewritten { text: spelled.unwrap_or_else(|| text.to_owned()), renamed: Vec::new() };
    let message = match names.parse(&current.text) {
        Ok(query) => return Ok(PreparedQuery { plan: plan(query, text), renamed: current.renamed }),
        Err(message) => message,
    };
    if names.unknown.is_empty() && !bridge::has_misplaced_aggregate(&Tokens::of(&current.text)) {
        while current.renamed.len() < BIND_RENAMES_MAX {
            let Some(next) = bridge::rename_bind(&Tokens::of(&current.text), current.renamed.len()) else {
                break;
            };
            current.text = next.text;
            current.renamed.extend(next.renamed);
        }
        let projected = bridge::repair_projections(&Tokens::of(&current.text), current.renamed.len());
        for candidate in [Some(Rewritten::default()), projected].into_iter().flatten() {
            if !candidate.text.is_empty() {
                current.text = candidate.text;
                current.renamed.extend(candidate.renamed);
            }
            if let Ok(query) = names.parse(&current.text) {
                return Ok(PreparedQuery { plan: plan(query, text), renamed: current.renamed });
            }
        }
    }
    if names.parse_all_known(&bridge::skeleton(&Tokens::of(&current.text))).is_err() {
        return Err(Refused::Grammar);
    }
    if let Some(prefix) = names.unknown.first() {
        return Err(Refused::UnknownPrefix((*prefix).to_owned()));
    }
    let expected = message.split_once(": ").map_or(message.as_str(), |(_, words)| words);
    Ok(PreparedQuery {
        plan: Plan::Fail(format!("The query cannot be evaluated: {expected}")),
        renamed: Vec::new(),
    })
}

fn plan(query: Query, text: &str) -> Plan {
    if !matches!(query, Query::Select { .. }) {
        return Plan::Fail("Only SELECT queries are evaluated".to_owned());
    }
    // SILENT would turn the refusal into one empty solution, so any call at all is the error.
    let mentions_service = text.as_bytes().windows(7).any(|word| word.eq_ignore_ascii_case(b"SERVICE"));
    if mentions_service {
        let tokens = Tokens::of(text);
        if (0..tokens.len()).any(|index| tokens.is_word(index, "SERVICE")) {
            return Plan::Fail("SERVICE is not supported".to_owned());
        }
    }
    Plan::Run(Arc::new(query))
}

/// The prefixes that matter for one query.
struct Names<'a> {
    /// Used, not declared, and bound by the table.
    bound: Vec<(&'a str, &'a str)>,
    /// Used, not declared, and bound nowhere.
    unknown: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn of(tokens: &Tokens<'a>, table: &'a PrefixTable) -> Self {
        let mut declared = HashSet::new();
        let mut used = HashSet::new();
        let mut names = Self { bound: Vec::new(), unknown: Vec::new() };
        for index in 0..tokens.len() {
            if tokens.kind(index) != Some(TokenKind::Prefixed) {
                continue;
            }
            let prefix = tokens.text(index).split(':').next().unwrap_or_default();
            if index > 0 && declares_prefix(tokens, index - 1) {
                declared.insert(prefix);
            } else if used.insert(prefix) && !declared.contains(prefix) {
                match table.get(prefix) {
                    Some(namespace) => names.bound.push((prefix, namespace)),
                    None => names.unknown.push(prefix),
                }
            }
        }
        names
    }

    /// Oxigraph's parse, or its message.
    fn parse(&self, text: &str) -> Result<Query, String> {
        self.parse_with(text, &[])
    }

    /// The same with the unknown prefixes bound to something.
    fn parse_all_known(&self, text: &str) -> Result<Query, String> {
        self.parse_with(text, &self.unknown)
    }

    fn parse_with(&self, text: &str, more: &[&str]) -> Result<Query, String> {
        let mut parser = SparqlParser::new().with_base_iri(BASE_IRI).map_err(|error| error.to_string())?;
        let more = more.iter().map(|prefix| (*prefix, BASE_IRI));
        for (prefix, namespace) in self.bound.iter().copied().chain(more) {
            // A namespace that is no IRI makes its names unknown to Oxigraph.
            parser = parser.clone().with_prefix(prefix, namespace).unwrap_or(parser);
        }
        parser.parse_query(text).map_err(|error| error.to_string())
    }
}

/// Puts Oxigraph's `error at LINE:COLUMN: expected ...` into rdflib's words.
fn syntax_error(tokens: &Tokens<'_>, message: &str) -> QuerySyntaxError {
    let place = message.strip_prefix("error at ").and_then(|rest| {
        let (line, rest) = rest.split_once(':')?;
        let (column, _) = rest.split_once(':')?;
        Some((line.parse::<usize>().ok()?, column.parse::<usize>().ok()?))
    });
    let Some((line, column)) = place else {
        return QuerySyntaxError { message: message.to_owned(), ..QuerySyntaxError::default() };
    };
    let source = tokens.source;
    let line_start: usize = source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let byte = source[line_start..]
        .char_indices()
        .nth(column.saturating_sub(1))
        .map_or(source.len(), |(at, _)| line_start + at);
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

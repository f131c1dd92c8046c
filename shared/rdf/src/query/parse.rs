//! From query text to a query that can run.

use super::execute::{ExecutionError, QueryGraph, QueryLimits, Solutions};
use crate::prefixes::PrefixTable;

/// Whose leniency a query may count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SPARQL 1.1 as rdflib reads it.
    Plain,
    /// The public Wikidata endpoint (Blazegraph).
    Wikidata,
}

/// A query that the benchmark counts as syntactically correct.
#[derive(Debug, Clone)]
pub struct PreparedQuery {}

/// Why a text is not a SPARQL query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct QuerySyntaxError {
    /// Message in rdflib's wording.
    pub message: String,
    /// The text found where something else was expected; empty if unknown.
    pub unexpected: String,
    /// A prefix that is neither declared nor in the table.
    pub unknown_prefix: Option<String>,
    /// 1-based line, where known.
    pub line: Option<usize>,
    /// 1-based column in code points, where known.
    pub column: Option<usize>,
}

/// Parses a query.
///
/// # Errors
/// The syntax error, if rdflib would refuse the query too.
pub fn prepare(
    text: &str,
    prefixes: &PrefixTable,
    dialect: Dialect,
) -> Result<PreparedQuery, QuerySyntaxError> {
    let _ = (text, prefixes, dialect);
    Ok(PreparedQuery {})
}

impl PreparedQuery {
    /// Runs the query.
    ///
    /// # Errors
    /// See [`ExecutionError`].
    pub fn execute(&self, graph: &QueryGraph, limits: &QueryLimits) -> Result<Solutions, ExecutionError> {
        let _ = (graph, limits);
        Ok(Solutions::default())
    }
}

//! Running queries on an indexed graph.
//!
//! # What a deadline does not stop
//!
//! The deadline, in processor time, holds wherever the evaluator copies or reads terms: joins, products, filters,
//! paths, sorting and grouping. It does not hold in the query optimiser (which takes cubic time in the number of triple
//! patterns) or inside one call of a function. Memory is not limited here: a query of sixty characters can collect
//! gigabytes within its time, and one that doubles a string with CONCAT thirty times ends the process. Untrusted queries
//! must therefore run in a process whose memory is limited and that can be killed.

use super::carrier;
use super::clock::with_time;
pub use super::dataset::QueryGraph;
use super::dialect::Dialect;
use super::forms;
use super::rdflib::functions;
use super::rdflib::raised::Raised;
use super::zero_length;
use crate::literal::rdflib_lexical;
use oxrdf::{Literal, NamedNode, Term};
use spareval::{QueryEvaluationError, QueryResults, QuerySolutionIter};
use spargebra::Query;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Limits of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryLimits {
    /// Processor time of the thread; `None` for no limit.
    pub deadline: Option<Duration>,
    /// Maximum number of rows.
    pub rows_max: usize,
}

impl Default for QueryLimits {
    /// 10 seconds, one million rows.
    fn default() -> Self {
        Self { deadline: Some(Duration::from_secs(10)), rows_max: 1_000_000 }
    }
}

/// Why a query that parsed has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// The deadline passed. The message is that of the published records.
    #[error("A time out occurred")]
    TimedOut,
    /// More rows than allowed.
    #[error("The result has more than {max} rows")]
    RowLimit {
        /// The limit.
        max: usize,
    },
    /// The query reached something at which rdflib raises, such as an aggregate in a FILTER.
    #[error(
        "The query cannot be evaluated: it uses an aggregate or GRAPH where there is none, sums or sorts by what has no \
         value, or has a regular expression that is none"
    )]
    Raised,
    /// The query cannot be evaluated.
    #[error("{0}")]
    Evaluation(String),
}

/// One bound cell of a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// An IRI without brackets.
    Iri(String),
    Literal {
        /// The text without quotes, language or datatype; numbers as rdflib writes them, except those that a query by the
        /// standard finds.
        lexical: String,
        /// The datatype IRI.
        datatype: String,
        /// The language tag of a language-tagged string.
        language: Option<String>,
    },
    /// A blank node's label, without `_:`.
    Blank(String),
}

/// The result table of a query. Rows that bind nothing are left out, as rdflib does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Solutions {
    /// Projected variables without `?`, in order.
    pub variables: Vec<String>,
    /// One cell per variable and row.
    pub rows: Vec<Vec<Option<Value>>>,
}

/// What a query finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryAnswer {
    /// The rows of a SELECT.
    Rows(Solutions),
    /// The answer to an ASK.
    Truth(bool),
}

/// Maximum number of unknown functions in a query whose calls are errors of their expression only.
pub const UNKNOWN_FUNCTIONS_MAX: usize = 64;

/// Evaluates a SELECT or an ASK.
pub(super) fn answer(
    query: &Query,
    separators: &[String],
    graph: &QueryGraph,
    dialect: Dialect,
    limits: &QueryLimits,
) -> Result<QueryAnswer, ExecutionError> {
    let graph = if dialect == Dialect::Standard { graph } else { graph.as_rdflib() };
    let mut query = forms::kept(query, graph.has_changing(), graph.compared());
    zero_length::added(&mut query, graph);
    let run = || with_time(limits.deadline, || evaluate(&query, separators, graph, dialect, limits.rows_max));
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(in_time) => in_time.unwrap_or(Err(ExecutionError::TimedOut)),
        // The engine's comparison of terms of different kinds is not a total order, so the standard library's sort may panic.
        Err(_) => Err(ExecutionError::Evaluation("The evaluator gave up".to_owned())),
    }
}

fn evaluate(
    query: &Query,
    separators: &[String],
    graph: &QueryGraph,
    dialect: Dialect,
    rows_max: usize,
) -> Result<QueryAnswer, ExecutionError> {
    let raised = Raised::default();
    let mut evaluator = forms::register(functions::evaluator(&raised, separators));
    for _ in 0..UNKNOWN_FUNCTIONS_MAX {
        match evaluator.prepare(query).execute(graph.dataset(dialect)) {
            // A call of an unknown function is an error of the expression, not of the query.
            Err(QueryEvaluationError::UnsupportedCustomFunction(name)) => {
                evaluator = functions::register(&raised, evaluator, name);
            }
            Err(error) => return Err(evaluation_error(&error)),
            Ok(QueryResults::Solutions(solutions)) => {
                return unless_raised(&raised, QueryAnswer::Rows(collect(solutions, dialect, rows_max)?));
            }
            Ok(QueryResults::Boolean(truth)) => return unless_raised(&raised, QueryAnswer::Truth(truth)),
            Ok(QueryResults::Graph(_)) => break,
        }
    }
    Err(ExecutionError::Evaluation("The query cannot be evaluated".to_owned()))
}

/// Refuses an answer at which rdflib raises.
fn unless_raised(raised: &Raised, answer: QueryAnswer) -> Result<QueryAnswer, ExecutionError> {
    if raised.is_set() { Err(ExecutionError::Raised) } else { Ok(answer) }
}

fn collect(
    solutions: QuerySolutionIter<'_>,
    dialect: Dialect,
    rows_max: usize,
) -> Result<Solutions, ExecutionError> {
    let variables = solutions.variables().iter().map(|variable| variable.as_str().to_owned()).collect();
    let mut rows = Vec::new();
    for solution in solutions {
        let solution = solution.map_err(|error| evaluation_error(&error))?;
        let row: Vec<_> =
            solution.values().iter().map(|term| term.as_ref().map(|term| value(term, dialect))).collect();
        if row.iter().all(Option::is_none) {
            continue;
        }
        if rows.len() >= rows_max {
            return Err(ExecutionError::RowLimit { max: rows_max });
        }
        rows.push(row);
    }
    Ok(Solutions { variables, rows })
}

fn evaluation_error(error: &QueryEvaluationError) -> ExecutionError {
    ExecutionError::Evaluation(error.to_string())
}

fn value(term: &Term, dialect: Dialect) -> Value {
    match term {
        Term::NamedNode(node) => Value::Iri(node.as_str().to_owned()),
        Term::BlankNode(node) => Value::Blank(node.as_str().to_owned()),
        Term::Literal(literal) => match carrier::uncarried(literal.clone().into()) {
            Term::Literal(literal) => literal_value(&literal, dialect),
            _ => literal_value(literal, dialect),
        },
    }
}

fn literal_value(literal: &Literal, dialect: Dialect) -> Value {
    let datatype: &str = literal.datatype().as_str();
    let lexical = match rdflib_lexical(literal.value(), datatype) {
        // rdflib keeps these in a form that the engine does not know.
        Cow::Owned(text)
            if dialect != Dialect::Standard && matches!(literal.value(), "INF" | "-INF" | "NaN") =>
        {
            text
        }
        _ => literal.value().to_owned(),
    };
    Value::Literal {
        lexical,
        datatype: NamedNode::from(literal.datatype()).into_string(),
        language: literal.language().map(str::to_owned),
    }
}

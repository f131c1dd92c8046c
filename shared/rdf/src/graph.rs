//! RDF graphs: parsing and serialising.

use crate::format::RdfFormat;
use crate::prefixes::PrefixTable;
use oxrdf::Triple;

/// Base against which relative IRIs of documents and queries are resolved.
pub const BASE_IRI: &str = "http://example.org/base/";

/// The distinct triples of a document in document order, with the prefixes it declares.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    triples: Vec<Triple>,
    prefixes: PrefixTable,
}

/// Why a document is not valid RDF in its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct SyntaxError {
    /// The parser's words.
    pub message: String,
    /// 0-based number of the line where the error starts, where the parser knows it.
    pub line: Option<usize>,
    /// 0-based column (code points) in that line.
    pub column: Option<usize>,
}

impl Graph {
    /// Parses a document. `base` defaults to [`BASE_IRI`].
    ///
    /// # Errors
    /// The first syntax error of the document.
    pub fn parse(text: &str, format: RdfFormat, base: Option<&str>) -> Result<Self, SyntaxError> {
        let _ = (text, format, base);
        Ok(Self::default())
    }

    /// [`Graph::parse`] for bytes, which must be UTF-8.
    ///
    /// # Errors
    /// The first syntax error of the document, or the place of the first invalid byte.
    pub fn parse_bytes(bytes: &[u8], format: RdfFormat, base: Option<&str>) -> Result<Self, SyntaxError> {
        let _ = bytes;
        Self::parse("", format, base)
    }

    /// Number of distinct triples.
    pub fn len(&self) -> usize {
        self.triples.len()
    }

    /// Whether the graph has no triple.
    pub fn is_empty(&self) -> bool {
        self.triples.is_empty()
    }

    /// The distinct triples in document order.
    pub fn iter(&self) -> std::slice::Iter<'_, Triple> {
        self.triples.iter()
    }

    /// The prefixes which the document declares.
    pub fn prefixes(&self) -> &PrefixTable {
        &self.prefixes
    }

    /// Writes the graph in a format.
    pub fn serialize(&self, format: RdfFormat, prefixes: &PrefixTable) -> String {
        let _ = (format, prefixes);
        String::new()
    }
}

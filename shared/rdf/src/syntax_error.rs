//! Why a document cannot be read.

use crate::scan::ScanFinding;

/// Why a document is not valid RDF in its format.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct SyntaxError {
    /// The parser's message.
    pub message: String,
    /// 0-based line of the error, if the parser knows it.
    pub line: Option<usize>,
    /// 0-based column (code points) in that line.
    pub column: Option<usize>,
    /// Set when the document was refused for its size or nesting before it was parsed.
    pub limit: Option<ScanFinding>,
}

impl SyntaxError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

/// The error for an invalid base IRI: a mistake of the caller, not of the document.
pub(crate) fn bad_base(base: &str, error: impl std::fmt::Display) -> SyntaxError {
    SyntaxError::new(format!("`{base}` cannot be the base IRI: {error}"))
}

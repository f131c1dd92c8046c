//! Reads SHACL shapes, which answers may be and checks may expect.

use rdf::shacl::ShaclShapes;
use rdf::{Graph, PrefixTable};

/// Reads shapes in Turtle.
///
/// # Errors
/// They cannot be used; the message says why.
pub(super) fn shapes_of(text: &str, prefixes: &PrefixTable) -> Result<ShaclShapes, String> {
    let graph = Graph::parse_turtle_with(text, prefixes).map_err(|error| error.to_string())?;
    ShaclShapes::read(&graph).map_err(|error| error.to_string())
}

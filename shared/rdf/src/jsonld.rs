//! JSON-LD; the JSON is parsed by `serde_json` first.
//!
//! In Python's `json` the last of several equal keys wins, and rdflib refuses a bare scalar. Parsing with `serde_json`
//! gives both, and its recursion limit (128 levels) protects the recursive JSON-LD expansion from deep nesting.

use crate::jsonld_as_rdflib;
use crate::prefixes::{PrefixTable, sorted_prefixes};
use crate::syntax_error::{SyntaxError, bad_base};
use oxjsonld::{JsonLdParser, JsonLdSerializer};
use oxrdf::{GraphName, GraphNameRef, Triple};
use serde_json::Value;
use std::io;

/// The triples of a JSON-LD document in its order, and the prefixes that it declares. It never loads a remote context.
pub(crate) fn parse(text: &str, base: &str) -> Result<(Vec<Triple>, PrefixTable), SyntaxError> {
    parse_value(json(text)?, base)
}

/// [`parse`] with what rdflib accepts and refuses.
pub(crate) fn parse_as_rdflib(text: &str, base: &str) -> Result<(Vec<Triple>, PrefixTable), SyntaxError> {
    jsonld_as_rdflib::parse(&json(text)?, base)
}

fn json(text: &str) -> Result<Value, SyntaxError> {
    let document: Value = serde_json::from_str(text).map_err(|error| SyntaxError {
        message: error.to_string(),
        line: error.line().checked_sub(1),
        column: error.column().checked_sub(1),
        limit: None,
    })?;
    if !document.is_object() && !document.is_array() {
        return Err(SyntaxError::new("a JSON-LD document is an object or an array"));
    }
    Ok(document)
}

fn parse_value(document: Value, base: &str) -> Result<(Vec<Triple>, PrefixTable), SyntaxError> {
    let canonical = document.to_string();
    let mut parser = JsonLdParser::new()
        .with_base_iri(base)
        .map_err(|error| bad_base(base, error))?
        .for_slice(canonical.as_bytes());
    let mut triples = Vec::new();
    for quad in parser.by_ref() {
        let quad = quad.map_err(|error| SyntaxError::new(message(&error.to_string())))?;
        // The benchmark compares one graph. As in rdflib, triples of graphs without a name belong to it, and those of named
        // graphs do not.
        if !matches!(quad.graph_name, GraphName::NamedNode(_)) {
            triples.push(Triple::new(quad.subject, quad.predicate, quad.object));
        }
    }
    let prefixes = sorted_prefixes(parser.prefixes());
    Ok((triples, prefixes))
}

fn message(words: &str) -> String {
    if words.contains("@type and @language cannot be used together") {
        "JSON-LD literals with both language and type are not allowed.".to_owned()
    } else {
        words.to_owned()
    }
}

/// Writes triples as JSON-LD with a context of the given prefixes.
pub(crate) fn serialize(triples: &[Triple], prefixes: &PrefixTable) -> io::Result<Vec<u8>> {
    let mut serializer = JsonLdSerializer::new();
    for (prefix, namespace) in prefixes.iter().filter(|(prefix, _)| !prefix.is_empty()) {
        serializer = serializer.clone().with_prefix(prefix, namespace).unwrap_or(serializer);
    }
    let mut writer = serializer.for_writer(Vec::new());
    for triple in triples {
        writer.serialize_quad(triple.as_ref().in_graph(GraphNameRef::DefaultGraph))?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use crate::{Graph, RdfFormat};

    fn parse(text: &str) -> Result<Graph, crate::SyntaxError> {
        Graph::parse(text, RdfFormat::JsonLd, None)
    }

    #[test]
    fn the_last_of_equal_keys_wins() {
        let graph = parse(r#"{"@id": "http://a", "http://p": "x", "@id": "http://b"}"#).unwrap();
        assert_eq!(graph.iter().next().unwrap().subject.to_string(), "<http://b>");
    }

    #[test]
    fn triples_of_a_graph_without_a_name_count_as_in_a_list_with_one_graph() {
        let graph = r#""@graph": [{"@id": "http://a", "http://p": "x"}]"#;
        assert_eq!(parse(&format!("{{{graph}}}")).unwrap().len(), 1);
        assert_eq!(parse(&format!("[{{{graph}}}]")).unwrap().len(), 1);
        assert_eq!(parse(&format!(r#"{{"http://q": 1, {graph}}}"#)).unwrap().len(), 2);
        assert!(parse(&format!(r#"{{"@id": "http://g", {graph}}}"#)).unwrap().is_empty());
    }

    #[test]
    fn scalars_remote_contexts_and_deep_nesting_are_errors() {
        assert!(parse("42").is_err());
        assert!(parse(r#"{"@context": "http://example.org/context", "@id": "x", "http://p": 1}"#).is_err());
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(parse(&deep).is_err());
    }

    #[test]
    fn a_json_error_knows_its_place() {
        let error = parse("{\n  \"@id\": \"x\"\n  \"p\": 1\n}").unwrap_err();
        assert_eq!(error.line, Some(2));
    }
}

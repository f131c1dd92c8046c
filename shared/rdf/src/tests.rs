//! Documents with what rdflib reads in them, a row each in `documents.jsonl`.

use serde::Deserialize;

use crate::{Graph, RdfFormat};

/// A document and its triples; none if rdflib refuses it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    format: Format,
    document: String,
    holds: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// Its triples are shown short, in the order of their texts.
    JsonLd,
    /// After `@prefix : <e:> .`
    Turtle,
    NTriples,
}

fn read(format: Format, document: &str) -> Option<String> {
    let (document, parsed) = match format {
        Format::JsonLd => (document.to_owned(), RdfFormat::JsonLd),
        Format::Turtle => (format!("@prefix : <e:> . {document}"), RdfFormat::Turtle),
        Format::NTriples => (document.to_owned(), RdfFormat::NTriples),
    };
    let graph = Graph::parse_as_rdflib(&document, parsed).ok()?;
    let mut lines: Vec<String> = graph.iter().map(ToString::to_string).collect();
    if !matches!(format, Format::JsonLd) {
        return Some(lines.join(" | "));
    }
    for line in &mut lines {
        *line = line.replace("http://www.w3.org/2001/XMLSchema#", "").replace("http://e/", "");
    }
    lines.sort();
    Some(lines.join(" . ").replace("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "a"))
}

#[test]
fn documents_hold_what_rdflib_reads_in_them() {
    let mut wrong = Vec::new();
    for line in include_str!("documents.jsonl").lines() {
        let Row { format, document, holds } = serde_json::from_str(line).expect(line);
        let found = read(format, &document);
        wrong.extend((found != holds).then(|| format!("{document}: {found:?}, not {holds:?}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_list_that_nothing_names_is_whole() {
    let list = read(Format::Turtle, "( :a :b ) .").unwrap();
    assert_eq!(list.matches("rdf-syntax-ns#first").count(), 2, "{list}");
    assert!(!list.contains("nothing") && list.split(" | ").count() == 4, "{list}");
}

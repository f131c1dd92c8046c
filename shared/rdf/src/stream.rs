//! Reads documents of any size, triple by triple. [`Graph`](crate::Graph) is for documents that fit into memory.

use std::io::{self, Read};

use oxrdf::{NamedNode, NamedOrBlankNode, Term};
use oxrdfxml::{RdfXmlParseError, RdfXmlParser};
use oxttl::{NQuadsParser, TriGParser, TurtleParseError};

use crate::graph::{BASE_IRI, located};
use crate::rdfxml;
use crate::syntax_error::{SyntaxError, bad_base};

/// A syntax that can be read without holding the document. JSON-LD cannot: its context may stand at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFormat {
    /// N-Triples and N-Quads.
    Lines,
    /// Turtle and TriG.
    Terse,
    /// RDF/XML.
    Xml,
}

impl StreamFormat {
    /// The endings of files' names, each with its syntax.
    pub const ENDINGS: [(&str, Self); 7] = [
        ("nt", Self::Lines),
        ("nq", Self::Lines),
        ("ttl", Self::Terse),
        ("trig", Self::Terse),
        ("rdf", Self::Xml),
        ("xml", Self::Xml),
        ("owl", Self::Xml),
    ];

    /// The syntax of files with this ending.
    pub fn of_ending(ending: &str) -> Option<Self> {
        Self::ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, format)| *format)
    }
}

/// Why a document cannot be read to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// It cannot be read, or what was read cannot be kept.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no RDF in its format.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
}

/// How much of an RDF/XML document is looked at for entity declarations, which stand at its beginning, in bytes.
const PROLOGUE_BYTES_MAX: u64 = 1 << 20;

/// Hands every triple of a document to `take`. The triples of all graphs of a dataset count; a triple that the document repeats
/// comes again.
///
/// # Errors
/// The document cannot be read or is no RDF, or `take` fails.
pub fn read_triples(
    mut input: &mut dyn Read,
    format: StreamFormat,
    take: &mut dyn FnMut(&NamedOrBlankNode, &NamedNode, &Term) -> io::Result<()>,
) -> Result<(), StreamError> {
    match format {
        StreamFormat::Lines => {
            for quad in NQuadsParser::new().for_reader(input) {
                let quad = quad.map_err(of_turtle)?;
                take(&quad.subject, &quad.predicate, &quad.object)?;
            }
        }
        StreamFormat::Terse => {
            let parser =
                TriGParser::new().with_base_iri(BASE_IRI).map_err(|error| bad_base(BASE_IRI, error))?;
            for quad in parser.for_reader(input) {
                let quad = quad.map_err(of_turtle)?;
                take(&quad.subject, &quad.predicate, &quad.object)?;
            }
        }
        StreamFormat::Xml => {
            let mut prologue = Vec::new();
            (&mut input).take(PROLOGUE_BYTES_MAX).read_to_end(&mut prologue)?;
            rdfxml::refuse_entity_bombs(&String::from_utf8_lossy(&prologue))?;
            let parser =
                RdfXmlParser::new().with_base_iri(BASE_IRI).map_err(|error| bad_base(BASE_IRI, error))?;
            let whole: &mut dyn Read = &mut prologue.as_slice().chain(input);
            for triple in parser.for_reader(whole) {
                let triple = triple.map_err(|error| match error {
                    RdfXmlParseError::Io(error) => StreamError::Io(error),
                    RdfXmlParseError::Syntax(error) => SyntaxError::new(error.to_string()).into(),
                })?;
                take(&triple.subject, &triple.predicate, &triple.object)?;
            }
        }
    }
    Ok(())
}

fn of_turtle(error: TurtleParseError) -> StreamError {
    match error {
        TurtleParseError::Io(error) => StreamError::Io(error),
        TurtleParseError::Syntax(error) => located(&error, error.to_string()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Graph, RdfFormat};

    fn read(document: &str, format: StreamFormat) -> Result<Vec<String>, StreamError> {
        let mut triples = Vec::new();
        read_triples(&mut document.as_bytes(), format, &mut |subject, property, object| {
            triples.push(format!("{subject} {property} {object}"));
            Ok(())
        })?;
        Ok(triples)
    }

    #[test]
    fn every_syntax_gives_the_triples_of_the_document() {
        let turtle =
            "@prefix e: <http://e/> . e:s e:p 'x'@en, 5, \"a\\u0000b\" ; e:q e:o . <rel> e:p 'y'^^e:t .";
        let graph = Graph::parse(turtle, RdfFormat::Turtle, None).unwrap();
        let mut expected: Vec<String> = graph.iter().map(ToString::to_string).collect();
        expected.sort();
        let lines = graph.serialize(RdfFormat::NTriples, graph.prefixes());
        let quads = lines.replace(" .\n", " <http://e/graph> .\n");
        let trig = format!("{turtle} <http://e/graph> {{ <rel> <http://e/p> 'y'^^<http://e/t> . }}");
        for (document, format) in [
            (turtle, StreamFormat::Terse),
            (trig.as_str(), StreamFormat::Terse),
            (lines.as_str(), StreamFormat::Lines),
            (quads.as_str(), StreamFormat::Lines),
        ] {
            let mut read = read(document, format).unwrap();
            read.sort();
            read.dedup();
            assert_eq!(read, expected, "{document}");
        }
        // XML has no way to write the character of code 0.
        let without = Graph::parse(&turtle.replace("\\u0000", ""), RdfFormat::Turtle, None).unwrap();
        let xml = without.serialize(RdfFormat::RdfXml, without.prefixes());
        assert_eq!(read(&xml, StreamFormat::Xml).unwrap().len(), without.len());
    }

    #[test]
    fn an_error_has_its_line_and_a_bomb_of_entities_is_refused() {
        let error =
            read("<http://e/s> <http://e/p> <http://e/o> .\noops\n", StreamFormat::Lines).unwrap_err();
        let StreamError::Syntax(error) = error else { panic!("{error}") };
        assert_eq!(error.line, Some(1));
        let bomb = "<!DOCTYPE r [<!ENTITY a \"aa\"><!ENTITY b \"&a;&a;\">]><r/>";
        assert!(read(bomb, StreamFormat::Xml).unwrap_err().to_string().contains("entities"));
    }
}

//! RDF graphs: parsing and serialising.

use crate::format::RdfFormat;
use crate::literal::rdflib_lexical;
use crate::prefixes::{PrefixTable, sorted_prefixes};
use crate::scan::ScanFinding;
use crate::syntax_error::{SyntaxError, bad_base};
use crate::turtle_as_rdflib::Rewritten;
use crate::{jsonld, ntriples_as_rdflib, rdfxml, turtle_as_rdflib};
use oxrdf::{BlankNode, Literal, NamedOrBlankNode, Term, Triple};
use oxttl::{NTriplesParser, NTriplesSerializer, TurtleParser, TurtleSerializer, TurtleSyntaxError};
use std::collections::{HashMap, HashSet};

/// Base against which relative IRIs of documents and queries are resolved.
pub const BASE_IRI: &str = "http://example.org/base/";

/// Maximum size of a document, in bytes. Oxigraph reads Turtle at some 100 MB/s, so this stays within seconds.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// The distinct triples of a document in document order, with the prefixes it declares.
///
/// Blank nodes are named `b0`, `b1`, ... by first occurrence, so that equal documents give equal graphs.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    triples: Vec<Triple>,
    prefixes: PrefixTable,
    /// Whether literals have the form in which rdflib keeps them.
    has_rdflib_forms: bool,
}

impl Graph {
    /// Parses a document. `base` defaults to [`BASE_IRI`]. Nothing is fetched over the network.
    ///
    /// # Errors
    /// The first syntax error of the document, or the limit it exceeds.
    pub fn parse(text: &str, format: RdfFormat, base: Option<&str>) -> Result<Self, SyntaxError> {
        check_size(text)?;
        let base = base.unwrap_or(BASE_IRI);
        let (triples, prefixes) = match format {
            RdfFormat::Turtle => parse_turtle(text, base)?,
            RdfFormat::NTriples => (parse_ntriples(text)?, PrefixTable::new()),
            RdfFormat::JsonLd => jsonld::parse(text, base)?,
            RdfFormat::RdfXml => rdfxml::parse(text, base)?,
        };
        Ok(Self::from_parsed(triples, prefixes))
    }

    /// [`Graph::parse`] with what rdflib accepts and refuses, where that differs from the standard.
    ///
    /// # Errors
    /// As of [`Graph::parse`].
    pub fn parse_as_rdflib(text: &str, format: RdfFormat) -> Result<Self, SyntaxError> {
        check_size(text)?;
        let (mut triples, prefixes) = match format {
            RdfFormat::Turtle => {
                let rewritten = turtle_as_rdflib::rewritten(text)?;
                // Errors are told of the document itself.
                let (mut triples, prefixes) = match parse_turtle(text, BASE_IRI) {
                    Ok(parsed) if !rewritten.differs => parsed,
                    Ok(_) => parse_rewritten(&rewritten)?,
                    Err(error) => parse_rewritten(&rewritten).map_err(|_| error)?,
                };
                triples.retain(|triple| triple.predicate.as_str() != turtle_as_rdflib::NOTHING);
                triples.iter_mut().for_each(turtle_as_rdflib::restore);
                (triples, prefixes)
            }
            RdfFormat::NTriples => (ntriples_as_rdflib::parse(text)?, PrefixTable::new()),
            RdfFormat::JsonLd => jsonld::parse_as_rdflib(text, BASE_IRI)?,
            RdfFormat::RdfXml => return Self::parse(text, format, None),
        };
        if format != RdfFormat::JsonLd {
            triples.iter_mut().for_each(keep_as_rdflib);
        }
        Ok(Self { has_rdflib_forms: true, ..Self::from_parsed(triples, prefixes) })
    }

    /// Whether its literals have the form in which rdflib keeps them.
    pub(crate) fn has_rdflib_forms(&self) -> bool {
        self.has_rdflib_forms
    }

    /// [`Graph::parse`] of Turtle that may use these prefixes undeclared.
    ///
    /// # Errors
    /// As of [`Graph::parse`].
    pub fn parse_turtle_with(text: &str, prefixes: &PrefixTable) -> Result<Self, SyntaxError> {
        check_size(text)?;
        let mut parser = TurtleParser::new();
        for (prefix, namespace) in prefixes.iter() {
            // A namespace that is not an IRI cannot be declared; a name that uses it is then an error of its own.
            parser = parser.clone().with_prefix(prefix, namespace).unwrap_or(parser);
        }
        let (triples, prefixes) = parsed_turtle(parser, text, BASE_IRI)?;
        Ok(Self::from_parsed(triples, prefixes))
    }

    /// [`Graph::parse`] for bytes, which must be UTF-8.
    ///
    /// # Errors
    /// The first syntax error of the document, or the place of the first invalid byte.
    pub fn parse_bytes(bytes: &[u8], format: RdfFormat, base: Option<&str>) -> Result<Self, SyntaxError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let valid = &bytes[..error.valid_up_to()];
            SyntaxError {
                message: format!("the document is not UTF-8: {error}"),
                line: Some(valid.iter().filter(|byte| **byte == b'\n').count()),
                ..SyntaxError::default()
            }
        })?;
        Self::parse(text, format, base)
    }

    /// A graph of parsed triples in document order: removes duplicates and names blank nodes.
    pub(crate) fn from_parsed(mut triples: Vec<Triple>, prefixes: PrefixTable) -> Self {
        name_blank_nodes(&mut triples);
        let mut seen = HashSet::with_capacity(triples.len());
        let first: Vec<bool> = triples.iter().map(|triple| seen.insert(triple)).collect();
        if first.contains(&false) {
            let mut first = first.into_iter();
            triples.retain(|_| first.next().unwrap_or(true));
        }
        Self { triples, prefixes, has_rdflib_forms: false }
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

    /// The prefixes which the document declares, by name.
    pub fn prefixes(&self) -> &PrefixTable {
        &self.prefixes
    }

    /// Writes the graph in a format, with the prefixes that the format can use.
    pub fn serialize(&self, format: RdfFormat, prefixes: &PrefixTable) -> String {
        let bytes = match format {
            RdfFormat::NTriples => {
                let mut writer = NTriplesSerializer::new().for_writer(Vec::new());
                self.iter().try_for_each(|triple| writer.serialize_triple(triple)).map(|()| writer.finish())
            }
            RdfFormat::Turtle => {
                let mut serializer = TurtleSerializer::new();
                for (prefix, namespace) in prefixes.iter() {
                    // A namespace that is not an IRI cannot be declared; its terms are then written in full.
                    serializer = serializer.clone().with_prefix(prefix, namespace).unwrap_or(serializer);
                }
                let mut writer = serializer.for_writer(Vec::new());
                self.iter()
                    .try_for_each(|triple| writer.serialize_triple(triple))
                    .and_then(|()| writer.finish())
            }
            RdfFormat::JsonLd => jsonld::serialize(&self.triples, prefixes),
            RdfFormat::RdfXml => rdfxml::serialize(&self.triples, prefixes),
        };
        // Writing into memory does not fail, and all serialisers write UTF-8.
        String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }
}

impl<'a> IntoIterator for &'a Graph {
    type Item = &'a Triple;
    type IntoIter = std::slice::Iter<'a, Triple>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn check_size(text: &str) -> Result<(), SyntaxError> {
    if text.len() <= DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    let finding = ScanFinding::TooLarge { max: DOCUMENT_BYTES_MAX };
    Err(SyntaxError { message: finding.to_string(), limit: Some(finding), ..SyntaxError::default() })
}

fn parse_turtle(text: &str, base: &str) -> Result<(Vec<Triple>, PrefixTable), SyntaxError> {
    parsed_turtle(TurtleParser::new(), text, base)
}

fn parsed_turtle(
    parser: TurtleParser,
    text: &str,
    base: &str,
) -> Result<(Vec<Triple>, PrefixTable), SyntaxError> {
    let mut parser =
        parser.with_base_iri(base).map_err(|error| bad_base(base, error))?.for_slice(text.as_bytes());
    let mut triples = Vec::new();
    for triple in parser.by_ref() {
        triples.push(triple.map_err(|error| terse_error(text, &error, "Turtle"))?);
    }
    let prefixes = sorted_prefixes(parser.prefixes());
    Ok((triples, prefixes))
}

/// Parses a document that was written again, whose IRIs need not be those of the standard.
fn parse_rewritten(document: &Rewritten) -> Result<(Vec<Triple>, PrefixTable), SyntaxError> {
    if !document.is_written {
        return parse_turtle(&document.text, BASE_IRI);
    }
    let parsed = parsed_turtle(TurtleParser::new().lenient(), &document.text, BASE_IRI)?;
    turtle_as_rdflib::check_names(&parsed.0)?;
    Ok(parsed)
}

fn parse_ntriples(text: &str) -> Result<Vec<Triple>, SyntaxError> {
    NTriplesParser::new()
        .for_slice(text.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| terse_error(text, &error, "N-Triples"))
}

fn terse_error(text: &str, error: &TurtleSyntaxError, format: &str) -> SyntaxError {
    let start = error.location().start;
    let offset = usize::try_from(start.offset).unwrap_or(usize::MAX).min(text.len());
    let message = if has_language_and_datatype(text, offset) {
        format!("{format} literals with both language and type are not allowed.")
    } else {
        error.to_string()
    };
    located(error, message)
}

/// An error of a parser at its place.
pub(crate) fn located(error: &TurtleSyntaxError, message: String) -> SyntaxError {
    let start = error.location().start;
    let place = |number: u64| usize::try_from(number).ok();
    SyntaxError { message, line: place(start.line), column: place(start.column), limit: None }
}

/// Whether the error at `offset` is the datatype of a literal that already has a language: `"..."@en^^<...>`.
fn has_language_and_datatype(text: &str, offset: usize) -> bool {
    let (Some(before), Some(after)) = (text.get(..offset), text.get(offset..)) else { return false };
    let before = before.trim_end_matches('^');
    let tag_start = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '-');
    let Some(literal) = tag_start.strip_suffix('@') else { return false };
    tag_start.len() < before.len()
        && literal.ends_with(['"', '\''])
        && (after.starts_with('^') || text[before.len()..].starts_with("^^"))
}

/// Gives the literal of a triple the form in which rdflib keeps it.
fn keep_as_rdflib(triple: &mut Triple) {
    if let Term::Literal(literal) = &mut triple.object
        && literal.language().is_none()
    {
        let lexical = rdflib_lexical(literal.value(), literal.datatype().as_str());
        *literal = Literal::new_typed_literal(lexical, literal.datatype());
    }
}

fn name_blank_nodes(triples: &mut [Triple]) {
    let mut names: HashMap<BlankNode, BlankNode> = HashMap::new();
    let mut rename = |node: &mut BlankNode| {
        let next = names.len();
        let name = names.entry(node.clone()).or_insert_with(|| BlankNode::new_unchecked(format!("b{next}")));
        node.clone_from(name);
    };
    for triple in triples {
        if let NamedOrBlankNode::BlankNode(node) = &mut triple.subject {
            rename(node);
        }
        if let Term::BlankNode(node) = &mut triple.object {
            rename(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(text: &str) -> Graph {
        Graph::parse(text, RdfFormat::Turtle, None).unwrap()
    }

    #[test]
    fn triples_are_distinct_and_in_document_order() {
        let graph = graph("@prefix e: <http://e/> . e:b e:p e:o . e:a e:p [ e:q 1 ] . e:b e:p e:o .");
        assert_eq!(graph.len(), 3);
        let subjects: Vec<_> = graph.iter().map(|triple| triple.subject.to_string()).collect();
        assert_eq!(subjects[0], "<http://e/b>");
        assert_eq!(graph.prefixes().get("e"), Some("http://e/"));
    }

    #[test]
    fn given_prefixes_need_no_declaration_and_move_no_place() {
        let mut prefixes = PrefixTable::new();
        prefixes.insert("e", "http://e/");
        let graph = Graph::parse_turtle_with("e:a e:p <b> .", &prefixes).unwrap();
        assert_eq!(graph.triples[0].to_string(), format!("<http://e/a> <http://e/p> <{BASE_IRI}b>"));
        let own = Graph::parse_turtle_with("@prefix e: <http://f/> . e:a e:p e:b .", &prefixes).unwrap();
        assert!(own.triples[0].to_string().contains("http://f/a"), "what a document declares wins");
        assert_eq!(Graph::parse_turtle_with("e:a e:p\n f:b .", &prefixes).unwrap_err().line, Some(1));
    }

    #[test]
    fn anonymous_nodes_get_the_same_names_every_time() {
        let text = "<s> <p> [ <q> [] ] .";
        assert_eq!(graph(text).triples, graph(text).triples);
    }

    #[test]
    fn relative_iris_are_resolved_against_the_fixed_base() {
        assert_eq!(graph("<s> <p> <o> .").triples[0].subject.to_string(), format!("<{BASE_IRI}s>"));
    }

    #[test]
    fn errors_carry_their_line_counted_from_zero() {
        let error = Graph::parse("<s> <p> <o> .\n<s> <p> ; oops", RdfFormat::Turtle, None).unwrap_err();
        assert_eq!(error.line, Some(1), "{error}");
    }

    #[test]
    fn a_literal_has_a_language_or_a_datatype_but_not_both() {
        let datatype = "<http://www.w3.org/2001/XMLSchema#string>";
        for (format, text, name) in [
            (RdfFormat::Turtle, format!("<s> <p> 'x'@en^^{datatype} ."), "Turtle"),
            (RdfFormat::NTriples, format!("<http://s> <http://p> \"x\"@en-GB^^{datatype} ."), "N-Triples"),
            (
                RdfFormat::JsonLd,
                r#"{"@id": "http://s", "http://p": {"@value": "x", "@language": "en", "@type": "http://t"}}"#
                    .into(),
                "JSON-LD",
            ),
        ] {
            let error = Graph::parse(&text, format, None).unwrap_err();
            assert_eq!(
                error.message,
                format!("{name} literals with both language and type are not allowed.")
            );
        }
    }

    #[test]
    fn every_format_reads_what_it_wrote() {
        let original = graph(
            "@prefix e: <http://e/> . e:s e:p 'x'@en, 5, 'y'^^e:t, [ e:q e:o ] ; a e:C . e:t e:p 'line\\nbreak' .",
        );
        for format in RdfFormat::ALL {
            let text = original.serialize(format, original.prefixes());
            let again =
                Graph::parse(&text, format, None).unwrap_or_else(|error| panic!("{format}: {error}\n{text}"));
            let form = crate::NormalForm::RdfSyntaxFix;
            assert_eq!(
                crate::normal_lines(&again, form),
                crate::normal_lines(&original, form),
                "{format}\n{text}"
            );
        }
    }

    #[test]
    fn invalid_utf8_is_a_syntax_error() {
        let error = Graph::parse_bytes(b"<s> <p> <o> .\n\xff", RdfFormat::Turtle, None).unwrap_err();
        assert_eq!(error.line, Some(1));
    }
}

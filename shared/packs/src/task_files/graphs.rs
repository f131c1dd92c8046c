//! Reads the graphs of a task file, indexes them for queries, and writes them in the way that prompts show them.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

use rdf::{Graph, PrefixTable, QueryGraph, RdfFormat, SyntaxError, Triple};

/// Prefixes that every file has.
const USUAL: [(&str, &str); 5] = [
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("sh", "http://www.w3.org/ns/shacl#"),
];

/// The prefixes that every file has.
pub(crate) fn usual_prefixes() -> PrefixTable {
    USUAL.into_iter().collect()
}

/// A graph on which queries run.
pub(crate) struct FileGraph {
    /// Its document as packs hold it: with the prefixes of the file.
    pub(crate) document: String,
    pub(crate) format: RdfFormat,
    pub(crate) prefixes: PrefixTable,
    pub(crate) indexed: QueryGraph,
    graph: Graph,
    /// The same triples in another order.
    reordered: OnceCell<QueryGraph>,
    shown: OnceCell<Rc<str>>,
    touching: OnceCell<TouchingTriples>,
}

/// The triples of a graph by the nodes that they touch, each as a line of N-Triples.
pub(crate) struct TouchingTriples {
    /// In the order of their lines.
    pub(crate) triples: Vec<WrittenTriple>,
    /// The places of the triples that a term stands in, by its text.
    places: HashMap<String, Vec<usize>>,
}

/// A triple in text form.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WrittenTriple {
    pub(crate) line: String,
    /// Its subject and its object.
    pub(crate) ends: [String; 2],
}

impl TouchingTriples {
    fn read(graph: &Graph) -> Self {
        let written = |triple: &Triple| WrittenTriple {
            line: format!("{triple} ."),
            ends: [triple.subject.to_string(), triple.object.to_string()],
        };
        let mut triples: Vec<WrittenTriple> = graph.iter().map(written).collect();
        triples.sort();
        triples.dedup();
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, triple) in triples.iter().enumerate() {
            let [subject, object] = &triple.ends;
            places.entry(subject.clone()).or_default().push(place);
            if object != subject {
                places.entry(object.clone()).or_default().push(place);
            }
        }
        Self { triples, places }
    }

    /// The places of the triples that a term stands in, in the order of their lines.
    pub(crate) fn of(&self, term: &str) -> &[usize] {
        self.places.get(term).map_or(&[], Vec::as_slice)
    }
}

impl FileGraph {
    /// Reads a document. In Turtle, prefixes of the file may be used undeclared.
    ///
    /// # Errors
    /// The parser's message with its place in the document.
    pub(crate) fn read(text: &str, format: RdfFormat, of_file: &PrefixTable) -> Result<Self, String> {
        let document = match format {
            RdfFormat::Turtle => format!("{}{text}", declarations(of_file)),
            RdfFormat::NTriples | RdfFormat::JsonLd | RdfFormat::RdfXml => text.to_owned(),
        };
        let added = document.len() - text.len();
        let graph = Graph::parse(&document, format, None).map_err(|error| message(&error, added))?;
        let prefixes = PrefixTable::layered(&[of_file, graph.prefixes()]);
        let indexed = QueryGraph::from_graph(&graph);
        let (reordered, shown, touching) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Ok(Self { document, format, prefixes, indexed, graph, reordered, shown, touching })
    }

    /// The graph in Turtle, as prompts show it, with the prefixes that it uses.
    pub(crate) fn shown(&self) -> Rc<str> {
        Rc::clone(self.shown.get_or_init(|| self.written(&self.graph, RdfFormat::Turtle)))
    }

    /// Its triples by the nodes that they touch.
    pub(crate) fn touching(&self) -> &TouchingTriples {
        self.touching.get_or_init(|| TouchingTriples::read(&self.graph))
    }

    /// Its triples.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// A part of it in a format, with the prefixes that it uses.
    pub(crate) fn written(&self, part: &Graph, format: RdfFormat) -> Rc<str> {
        let plain = part.serialize(RdfFormat::NTriples, &PrefixTable::new());
        let is_used = |(_, namespace): &(&str, &str)| plain.contains(&format!("<{namespace}"));
        let used: PrefixTable = self.prefixes.iter().filter(is_used).collect();
        part.serialize(format, &used).trim_end().into()
    }

    /// The same triples in another order: a result that differs on it depends on the order.
    pub(crate) fn reordered(&self) -> &QueryGraph {
        self.reordered.get_or_init(|| {
            let lines = self.graph.serialize(RdfFormat::NTriples, &PrefixTable::new());
            let reversed: Vec<&str> = lines.lines().rev().collect();
            let graph = Graph::parse(&reversed.join("\n"), RdfFormat::NTriples, None);
            graph.map(|graph| QueryGraph::from_graph(&graph)).unwrap_or_default()
        })
    }
}

/// Prefixes as one line before a Turtle document, so that the lines of the document keep their numbers.
fn declarations(prefixes: &PrefixTable) -> String {
    let lines: Vec<String> =
        prefixes.iter().map(|(prefix, namespace)| format!("@prefix {prefix}: <{namespace}> . ")).collect();
    lines.concat()
}

/// An error with its place in the author's document, before whose first line `added` bytes were put.
fn message(error: &SyntaxError, added: usize) -> String {
    let place = error.line.zip(error.column).map(|(line, column)| {
        let column = if line == 0 { column.saturating_sub(added) } else { column };
        format!("line {}, column {}: ", line + 1, column + 1)
    });
    // The parser's own place counts what was put before the document.
    let reason = error.message.split_once(": ").filter(|(place, _)| place.starts_with("Parser error"));
    let reason = reason.map_or(error.message.as_str(), |(_, reason)| reason);
    format!("{}{reason}", place.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> PrefixTable {
        let mut table = usual_prefixes();
        table.insert("", "http://e/");
        table
    }

    #[test]
    fn prefixes_of_the_file_need_no_declaration_and_move_no_place() {
        let graph = FileGraph::read(":a :p :b ; rdfs:label 'x' .", RdfFormat::Turtle, &table()).unwrap();
        assert_eq!(graph.indexed.len(), 2);
        assert!(graph.shown().contains(":a") && !graph.shown().contains("xsd"), "{}", graph.shown());
        assert_eq!(graph.reordered().len(), 2);
        let first = FileGraph::read(":a :p oops .", RdfFormat::Turtle, &table()).err().unwrap();
        assert!(first.starts_with("line 1, column 7: "), "{first}");
        let second = FileGraph::read(":a :p\n oops .", RdfFormat::Turtle, &table()).err().unwrap();
        assert!(second.starts_with("line 2, column 2: "), "{second}");
    }
}

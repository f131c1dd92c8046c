//! Turtle answers of the single-shot classes that read as much as they can out of a broken document.

use rdf::{Graph, PrefixTable, RdfFormat, parse_turtle_tolerantly};

use crate::exercise::{Effort, Limit, Stage};
use crate::text::python::splitlines;

/// What could be read of a document.
pub(crate) struct Readable {
    /// The triples of what is left when the broken lines are taken out.
    pub(crate) graph: Graph,
    /// The limit that kept it from being read at all.
    pub(crate) limit: Option<Limit>,
}

/// Reads a document as far as the effort allows.
pub(crate) fn read(document: &str, effort: &Effort) -> Readable {
    let limit = match effort.stage {
        Stage::WithoutParsing(limit) => Some(limit),
        _ if document.len() > effort.limits.answer_bytes_max => Some(Limit::Size),
        _ => None,
    };
    let graph = match limit {
        Some(_) => Graph::default(),
        None => parse_turtle_tolerantly(document, &splitlines(document)),
    };
    Readable { graph, limit }
}

impl Readable {
    /// The triples as N-Triples, for readers of the record.
    pub(crate) fn ntriples(&self) -> String {
        self.graph.serialize(RdfFormat::NTriples, &PrefixTable::new())
    }
}

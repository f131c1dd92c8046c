//! Where a dump keeps its statements: in memory or in a sorted file.

use std::collections::BTreeMap;

use rdf::sorted::{SortedError, SortedTriples};
use rdf::{Graph, NamedOrBlankNode, Term};

use crate::kinds::kghalubench::draw::graph::GraphError;
use crate::kinds::kghalubench::draw::statements::iri;

/// Statements by subject. Subjects are IRIs: blank nodes have no name to ask about.
pub(crate) trait StatementStore: std::fmt::Debug {
    /// Hands all statements to `take`, subject after subject in the order of their IRIs.
    fn visit(&self, take: &mut dyn FnMut(VisitedStatement<'_>)) -> Result<(), GraphError>;

    /// The subject at a place.
    fn subject_at(&mut self, place: u64) -> Result<String, GraphError>;

    /// The statements about a subject, property and object: all, or those with one of these properties.
    fn of(&mut self, subject: &str, only: Option<&[&str]>) -> Result<Vec<(String, Term)>, GraphError>;
}

/// A statement of a visit.
pub(crate) struct VisitedStatement<'a> {
    /// For [`StatementStore::subject_at`].
    pub(crate) place: u64,
    pub(crate) subject: &'a str,
    pub(crate) property: &'a str,
    /// The object, if it is an IRI.
    pub(crate) object: Option<&'a str>,
}

/// Statements in memory, sorted by subject.
#[derive(Debug)]
pub(crate) struct StatementsInMemory(Vec<(String, Vec<(String, Term)>)>);

impl StatementsInMemory {
    pub(crate) fn new(graph: &Graph) -> Self {
        let mut subjects: BTreeMap<&str, Vec<(String, Term)>> = BTreeMap::new();
        for triple in graph {
            if let NamedOrBlankNode::NamedNode(subject) = &triple.subject {
                let statement = (triple.predicate.as_str().to_owned(), triple.object.clone());
                subjects.entry(subject.as_str()).or_default().push(statement);
            }
        }
        Self(subjects.into_iter().map(|(subject, statements)| (subject.to_owned(), statements)).collect())
    }
}

impl StatementStore for StatementsInMemory {
    fn visit(&self, take: &mut dyn FnMut(VisitedStatement<'_>)) -> Result<(), GraphError> {
        for (place, (subject, statements)) in self.0.iter().enumerate() {
            for (property, object) in statements {
                take(VisitedStatement { place: place as u64, subject, property, object: iri(object) });
            }
        }
        Ok(())
    }

    fn subject_at(&mut self, place: u64) -> Result<String, GraphError> {
        let subject = usize::try_from(place).ok().and_then(|place| self.0.get(place));
        Ok(subject.map(|(subject, _)| subject.clone()).unwrap_or_default())
    }

    fn of(&mut self, subject: &str, only: Option<&[&str]>) -> Result<Vec<(String, Term)>, GraphError> {
        let Ok(place) = self.0.binary_search_by(|(known, _)| known.as_str().cmp(subject)) else {
            return Ok(Vec::new());
        };
        let wanted =
            |(property, _): &&(String, Term)| only.is_none_or(|only| only.contains(&property.as_str()));
        Ok(self.0[place].1.iter().filter(wanted).cloned().collect())
    }
}

/// Statements in a sorted file.
#[derive(Debug)]
pub(crate) struct StatementsInFile(pub(crate) SortedTriples);

impl StatementStore for StatementsInFile {
    fn visit(&self, take: &mut dyn FnMut(VisitedStatement<'_>)) -> Result<(), GraphError> {
        let visited = self.0.visit(&mut |place, subject, property, object| {
            let object = object.strip_prefix('<').and_then(|iri| iri.strip_suffix('>'));
            take(VisitedStatement { place, subject, property, object });
        });
        visited.map_err(of_file)
    }

    fn subject_at(&mut self, place: u64) -> Result<String, GraphError> {
        self.0.subject_at(place).map_err(of_file)
    }

    fn of(&mut self, subject: &str, only: Option<&[&str]>) -> Result<Vec<(String, Term)>, GraphError> {
        self.0.of(subject, only).map_err(of_file)
    }
}

fn of_file(error: SortedError) -> GraphError {
    GraphError::Index(error.to_string())
}

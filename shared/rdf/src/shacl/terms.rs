//! The names of SHACL, and how a graph of shapes is read: values of properties, lists, numbers.

use std::collections::HashSet;

use crate::{QueryGraph, Term};

use crate::shacl::error::ShapesError;

const SH: &str = "http://www.w3.org/ns/shacl#";
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const RDFS: &str = "http://www.w3.org/2000/01/rdf-schema#";

/// Longest list in a graph of shapes.
const LIST_ITEMS_MAX: usize = 10_000;

/// A name of SHACL in full.
pub(crate) fn sh(local: &str) -> String {
    format!("{SH}{local}")
}

/// The type of a node.
pub(crate) fn rdf_type() -> String {
    format!("{RDF}type")
}

/// The superclass of a class.
pub(crate) fn subclass() -> String {
    format!("{RDFS}subClassOf")
}

/// The class of classes.
pub(crate) fn rdfs_class() -> String {
    format!("{RDFS}Class")
}

/// The graph of shapes as it is read.
pub(crate) struct ShapesGraph<'g> {
    pub(crate) graph: &'g QueryGraph,
}

impl ShapesGraph<'_> {
    pub(crate) fn term(&self, node: u32) -> &Term {
        self.graph.term(node)
    }

    fn predicate(&self, iri: &str) -> Option<u32> {
        self.graph.number_of_iri(iri)
    }

    /// The values of a property, in the order of the index.
    pub(crate) fn values(&self, node: u32, iri: &str) -> Vec<u32> {
        let Some(predicate) = self.predicate(iri) else { return Vec::new() };
        self.graph.matching(Some(node), Some(predicate), None).map(|[_, _, object]| object).collect()
    }

    /// The only value of a property of SHACL.
    pub(crate) fn one(&self, node: u32, local: &str) -> Result<Option<u32>, ShapesError> {
        match self.values(node, &sh(local)).as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            _ => Err(self.wrong(node, format!("has several values of `sh:{local}`"))),
        }
    }

    /// Who has a property.
    pub(crate) fn subjects(&self, iri: &str) -> Vec<u32> {
        let Some(predicate) = self.predicate(iri) else { return Vec::new() };
        self.graph.matching(None, Some(predicate), None).map(|[subject, _, _]| subject).collect()
    }

    /// Who has this value at a property.
    pub(crate) fn subjects_of(&self, iri: &str, object: &str) -> Vec<u32> {
        let (Some(predicate), Some(object)) = (self.predicate(iri), self.predicate(object)) else {
            return Vec::new();
        };
        self.graph.matching(None, Some(predicate), Some(object)).map(|[subject, _, _]| subject).collect()
    }

    /// Whether a node begins a list.
    pub(crate) fn is_list(&self, node: u32) -> bool {
        !self.values(node, &format!("{RDF}first")).is_empty()
    }

    /// The items of a list.
    pub(crate) fn list(&self, head: u32, what: &str) -> Result<Vec<u32>, ShapesError> {
        let nil = self.predicate(&format!("{RDF}nil"));
        let (mut items, mut seen, mut node) = (Vec::new(), HashSet::new(), head);
        while Some(node) != nil {
            let first = self.values(node, &format!("{RDF}first"));
            let rest = self.values(node, &format!("{RDF}rest"));
            let ([item], [next], true) = (first.as_slice(), rest.as_slice(), seen.insert(node)) else {
                return Err(self.wrong(head, format!("is no list, as `{what}` needs")));
            };
            if items.len() == LIST_ITEMS_MAX {
                return Err(self.wrong(head, format!("has more than {LIST_ITEMS_MAX} items")));
            }
            items.push(*item);
            node = *next;
        }
        Ok(items)
    }

    /// A whole number from 0 at a property of SHACL.
    pub(crate) fn count(&self, node: u32, local: &str) -> Result<Option<u64>, ShapesError> {
        let Some(value) = self.one(node, local)? else { return Ok(None) };
        let number = match self.term(value) {
            Term::Literal(literal) if crate::literal::is_numeric(literal.datatype().as_str()) => {
                literal.value().parse().ok()
            }
            _ => None,
        };
        number
            .map(Some)
            .ok_or_else(|| self.wrong(node, format!("has a `sh:{local}` that is no whole number")))
    }

    pub(crate) fn is_true(&self, node: u32, local: &str) -> Result<bool, ShapesError> {
        Ok(self.one(node, local)?.is_some_and(|value| match self.term(value) {
            Term::Literal(literal) => literal.value() == "true",
            _ => false,
        }))
    }

    pub(crate) fn text(&self, node: u32, local: &str) -> Result<Option<String>, ShapesError> {
        let Some(value) = self.one(node, local)? else { return Ok(None) };
        match self.term(value) {
            Term::Literal(literal) => Ok(Some(literal.value().to_owned())),
            _ => Err(self.wrong(node, format!("has a `sh:{local}` that is no text"))),
        }
    }

    /// An IRI, as the value of a property.
    pub(crate) fn iri(&self, shape: u32, value: u32, local: &str) -> Result<String, ShapesError> {
        match self.term(value) {
            Term::NamedNode(node) => Ok(node.as_str().to_owned()),
            _ => Err(self.wrong(shape, format!("has a `sh:{local}` that is no IRI"))),
        }
    }

    pub(crate) fn wrong(&self, shape: u32, problem: String) -> ShapesError {
        ShapesError::IllFormed { shape: self.term(shape).to_string(), problem }
    }
}

//! The facts of a graph that are compared.

use std::collections::{BTreeSet, HashMap};

use rdf::{Graph, NamedOrBlankNode, Term};

use crate::families::readable_turtle::written;

const NUMERIC_VALUE: &str = "http://qudt.org/schema/qudt/numericValue";
const HAS_UNIT: &str = "http://qudt.org/schema/qudt/hasUnit";

/// The properties that express facts.
pub(super) struct Vocabulary {
    pub(super) print_material: String,
    pub(super) support_material: String,
    pub(super) dimensions: Vec<String>,
}

/// Terms are written as in N-Triples, literals as rdflib normalises them.
pub(super) struct Facts {
    pub(super) print_materials: BTreeSet<String>,
    pub(super) support_materials: BTreeSet<String>,
    /// Dimension and value.
    pub(super) dimension_values: BTreeSet<(String, String)>,
    /// Property (not necessarily a dimension) and unit.
    pub(super) dimension_units: BTreeSet<(String, String)>,
}

impl Facts {
    pub(super) fn of(graph: &Graph, vocabulary: &Vocabulary) -> Self {
        let objects_of = |property: &str| -> BTreeSet<String> {
            graph
                .iter()
                .filter(|triple| triple.predicate.as_str() == property)
                .map(|triple| written(&triple.object))
                .collect()
        };
        let is_dimension = |property: &str| vocabulary.dimensions.iter().any(|known| known == property);
        let mut values = through_nodes(graph, NUMERIC_VALUE);
        values.retain(|(property, _)| is_dimension(property));
        Self {
            print_materials: objects_of(&vocabulary.print_material),
            support_materials: objects_of(&vocabulary.support_material),
            dimension_values: values,
            dimension_units: through_nodes(graph, HAS_UNIT),
        }
    }
}

/// The pairs (p, v) of `?s p ?n . ?n property ?v`.
fn through_nodes(graph: &Graph, property: &str) -> BTreeSet<(String, String)> {
    let mut ends: HashMap<&NamedOrBlankNode, Vec<String>> = HashMap::new();
    for triple in graph.iter().filter(|triple| triple.predicate.as_str() == property) {
        ends.entry(&triple.subject).or_default().push(written(&triple.object));
    }
    let mut pairs = BTreeSet::new();
    for triple in graph.iter() {
        let node: NamedOrBlankNode = match &triple.object {
            Term::NamedNode(node) => node.clone().into(),
            Term::BlankNode(node) => node.clone().into(),
            Term::Literal(_) => continue,
        };
        for end in ends.get(&node).into_iter().flatten() {
            pairs.insert((triple.predicate.as_str().to_owned(), end.clone()));
        }
    }
    pairs
}

//! The graph that a case names or contains.

use std::sync::Arc;

use rdf::{Graph, PrefixTable, QueryGraph, RdfFormat};
use serde_json::{Map, Value};

use crate::exercise::CaseError;
use crate::graphs::{ExerciseGraph, GraphLibrary};

/// The graph of a case, which may not have been read yet.
pub(crate) enum CaseGraph {
    Loaded(Arc<ExerciseGraph>),
    /// A graph of a library that defers reading.
    Deferred(GraphLibrary, String),
}

impl CaseGraph {
    /// A graph of the library, read now unless the library defers it.
    pub(crate) fn named(library: &GraphLibrary, name: &str) -> Result<Self, CaseError> {
        if library.is_deferred() {
            library.check(name)?;
            return Ok(Self::Deferred(library.clone(), name.to_owned()));
        }
        library.get(name).map(Self::Loaded)
    }

    /// Whether it still has to be read.
    pub(crate) fn is_deferred(&self) -> bool {
        matches!(self, Self::Deferred(..))
    }

    /// The graph, read now if that was deferred.
    pub(crate) fn load(self) -> Result<Arc<ExerciseGraph>, CaseError> {
        match self {
            Self::Loaded(graph) => Ok(graph),
            Self::Deferred(library, name) => library.get(&name),
        }
    }
}

/// The graph of the fields `graphTurtle` or `graph` (a Turtle document) or `graphName` (a graph of the library), in
/// this order; `None` if the case has none of them.
pub(crate) fn of_case(
    data: &Map<String, Value>,
    library: &GraphLibrary,
) -> Result<Option<CaseGraph>, CaseError> {
    for field in ["graphTurtle", "graph"] {
        if let Some(document) = data.get(field).and_then(Value::as_str) {
            return parse(field, document).map(|graph| Some(CaseGraph::Loaded(graph)));
        }
    }
    data.get("graphName").and_then(Value::as_str).map(|name| CaseGraph::named(library, name)).transpose()
}

/// Reads a Turtle document of the case; `field` names it in errors.
pub(crate) fn parse(field: &'static str, document: &str) -> Result<Arc<ExerciseGraph>, CaseError> {
    let graph = Graph::parse(document, RdfFormat::Turtle, None)
        .map_err(|error| CaseError::Reference { field, message: error.to_string() })?;
    Ok(Arc::new(ExerciseGraph { prefixes: graph.prefixes().clone(), graph: QueryGraph::from_graph(&graph) }))
}

/// The optional field `prefixes`: an object from prefix (without colon) to namespace IRI.
pub(crate) fn prefixes_of_case(data: &Map<String, Value>) -> Result<PrefixTable, CaseError> {
    let mut prefixes = PrefixTable::new();
    match data.get("prefixes") {
        None | Some(Value::Null) => {}
        Some(Value::Object(entries)) => {
            for (prefix, namespace) in entries {
                let namespace = namespace.as_str().ok_or(PREFIXES)?;
                prefixes.insert(prefix, namespace);
            }
        }
        Some(_) => return Err(PREFIXES),
    }
    Ok(prefixes)
}

const PREFIXES: CaseError =
    CaseError::Field { field: "prefixes", expected: "object from prefix to namespace IRI" };

/// The prefixes with which IRIs of results are written. Later `layers` override earlier ones, and if a namespace has
/// several prefixes, only the one of the latest layer remains.
pub(crate) fn compact_table(layers: &[&PrefixTable]) -> PrefixTable {
    let mut table = PrefixTable::new();
    let all = PrefixTable::layered(layers);
    let by_rank = |prefix: &str| layers.iter().rposition(|layer| layer.get(prefix).is_some());
    for (prefix, namespace) in all.iter() {
        let rank = by_rank(prefix);
        let outranked =
            all.iter().any(|(other, same)| same == namespace && other != prefix && by_rank(other) > rank);
        if !outranked {
            table.insert(prefix, namespace);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_the_latest_layer_stands_for_a_namespace() {
        let mut document = PrefixTable::new();
        document.insert("", "http://example.org/zoo#");
        document.insert("owl", "http://example.org/owls#");
        let mut task = PrefixTable::new();
        task.insert("ns1", "http://example.org/zoo#");
        let table = compact_table(&[&document, &task]);
        assert_eq!(
            table.iter().collect::<Vec<_>>(),
            [("owl", "http://example.org/owls#"), ("ns1", "http://example.org/zoo#")]
        );
    }
}

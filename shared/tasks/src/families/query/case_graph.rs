//! The graph that a case names or contains.

use std::sync::Arc;

use rdf::PrefixTable;
use serde_json::{Map, Value};

use crate::exercise::CaseError;
use crate::families::case_fields;
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
    Ok(Arc::new((&case_fields::turtle(document, field)?).into()))
}

/// The optional field `prefixes`: an object from prefix (without colon) to namespace IRI.
pub(crate) fn prefixes_of_case(data: &Map<String, Value>) -> Result<PrefixTable, CaseError> {
    const WRONG: CaseError =
        CaseError::Field { field: "prefixes", expected: "object from prefix to namespace IRI" };
    match data.get("prefixes") {
        None | Some(Value::Null) => Ok(PrefixTable::new()),
        Some(Value::Object(entries)) => {
            let entries = entries.iter();
            entries.map(|(prefix, namespace)| Ok((prefix, namespace.as_str().ok_or(WRONG)?))).collect()
        }
        Some(_) => Err(WRONG),
    }
}

/// The prefixes with which IRIs of results are written. Later `layers` override earlier ones, and if a namespace has
/// several prefixes, only the one of the latest layer remains.
pub(crate) fn compact_table(layers: &[&PrefixTable]) -> PrefixTable {
    let all = PrefixTable::layered(layers);
    let rank = |prefix: &str| layers.iter().rposition(|layer| layer.get(prefix).is_some());
    let outranked = |prefix: &str, namespace: &str| {
        all.iter().any(|(other, same)| same == namespace && other != prefix && rank(other) > rank(prefix))
    };
    all.iter().filter(|(prefix, namespace)| !outranked(prefix, namespace)).collect()
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

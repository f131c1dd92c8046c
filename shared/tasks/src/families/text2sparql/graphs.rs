//! The graphs of the data sets.

use super::Text2SparqlSet;
use crate::exercise::{CaseError, CaseInput};
use crate::families::query::case_graph::{self, CaseGraph};
use crate::graphs::GraphLibrary;

/// Library name of the bestiary, of which prompts show parts only.
const BEASTIARY: &str = "beastiary";

/// Library name of the extract that replaces Wikidata's endpoint.
const WIKIDATA: &str = "wikidata-mini";

/// The graph on which the queries of a case run: the one that the case names or contains, else that of its data set.
pub(super) fn graph(
    input: &CaseInput<'_>,
    set: Text2SparqlSet,
    library: &GraphLibrary,
) -> Result<CaseGraph, CaseError> {
    if let Some(graph) = case_graph::of_case(input.data, library)? {
        return Ok(graph);
    }
    match set {
        Text2SparqlSet::Beastiary => CaseGraph::named(library, BEASTIARY),
        Text2SparqlSet::LcQuad => CaseGraph::named(library, WIKIDATA),
        // Published records of this set contain the graph only in their first prompt.
        Text2SparqlSet::CoypuMini => {
            let document = input.first_prompt.and_then(turtle_of_prompt).ok_or(CaseError::Field {
                field: "graphTurtle",
                expected: "text, or a recorded first prompt with a turtle block",
            })?;
            case_graph::parse("first prompt", document).map(CaseGraph::Loaded)
        }
        Text2SparqlSet::Organizational | Text2SparqlSet::OrgaNumerical => {
            Err(CaseError::Field { field: "graphTurtle", expected: "text" })
        }
        Text2SparqlSet::Generic => Err(CaseError::Field {
            field: "graphName",
            expected: "name of a graph, unless `graphTurtle` holds the graph",
        }),
    }
}

/// The body of the prompt's turtle block. Prompts also mention fences within sentences, so this searches for the
/// label instead of reading block after block.
fn turtle_of_prompt(prompt: &str) -> Option<&str> {
    let (_, block) = prompt.split_once("```turtle\n")?;
    Some(block.split_once("```")?.0)
}

//! The file that `kgfleet task new` writes: a task that runs, with comments.

use minijinja::Environment;
use minijinja::value::{Serde, Value as TemplateValue};
use rdf::{Dialect, Graph, PrefixTable, QueryAnswer, QueryGraph, QueryLimits, Value};
use serde_json::json;

use crate::task_files::compile::format_of;

/// Most cases of a new file.
const CASES_MAX: usize = 3;

/// The text of a new file for queries over a graph, with cases from the graph itself. `name` is the pack's, `path` that of the
/// graph beside the file, `canary` a text that nobody else has.
///
/// # Errors
/// The graph cannot be read, or has no class with members.
pub fn text_to_sparql(name: &str, path: &str, document: &str, canary: &str) -> Result<String, String> {
    let graph =
        Graph::parse(document, format_of(None, path), None).map_err(|error| format!("{path}: {error}"))?;
    let quoted = |(question, query): (String, String)| [format!("{question:?}"), query];
    let cases: Vec<_> = cases(&graph)?.into_iter().map(quoted).collect();
    filled(json!({
        "name": format!("{name:?}"), "canary": format!("{canary:?}"), "path": format!("{path:?}"), "cases": cases,
        "label": format!("{:?}", format!("{name}-sparql")),
    }))
}

/// The text of a new file without a graph.
///
/// # Errors
/// The text cannot be written.
pub fn answer_word(name: &str, canary: &str) -> Result<String, String> {
    let label = format!("{name}-words");
    filled(
        json!({"name": format!("{name:?}"), "canary": format!("{canary:?}"), "label": format!("{label:?}")}),
    )
}

fn filled(values: serde_json::Value) -> Result<String, String> {
    let text = Environment::new()
        .render_str(include_str!("skeleton.toml.jinja"), TemplateValue::from(Serde(values)));
    text.map_err(|error| error.to_string())
}

/// Questions with their queries: how many members a class has, and which.
fn cases(graph: &Graph) -> Result<Vec<(String, String)>, String> {
    const CLASSES: &str = "SELECT ?c (COUNT(DISTINCT ?s) AS ?n) WHERE { ?s a ?c FILTER(isIRI(?c)) } GROUP BY ?c ORDER BY DESC(?n) STR(?c) LIMIT 3";
    let indexed = QueryGraph::from_graph(graph);
    let prepared =
        rdf::prepare(CLASSES, &PrefixTable::new(), Dialect::Standard).map_err(|error| error.to_string())?;
    let found = prepared.answer(&indexed, &QueryLimits::default()).map_err(|error| error.to_string())?;
    let QueryAnswer::Rows(found) = found else { return Err("no classes were found".to_owned()) };
    let mut cases = Vec::new();
    for row in &found.rows {
        let Some(Value::Iri(class)) = row.first().and_then(Option::as_ref) else { continue };
        let (name, short) = (rdf::iri_suffix(class), graph.prefixes().compact(class));
        let class = short.unwrap_or_else(|| format!("<{class}>"));
        cases.push((
            format!("Which things are of the class {name}?"),
            format!("SELECT ?x WHERE {{ ?x a {class} }}"),
        ));
        cases.push((
            format!("How many things are of the class {name}?"),
            format!("SELECT (COUNT(DISTINCT ?x) AS ?n) WHERE {{ ?x a {class} }}"),
        ));
    }
    cases.truncate(CASES_MAX);
    if cases.is_empty() { Err("the graph has no class with members".to_owned()) } else { Ok(cases) }
}

//! The file that `kgfleet task new` writes: a task that runs, with comments.

use std::fmt::Write;

use rdf::{Dialect, Graph, PrefixTable, QueryAnswer, QueryGraph, QueryLimits, Value};

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
    let cases = cases(&graph)?;
    let mut text = head(name, canary);
    let _ = write!(
        text,
        "[graphs.main]\nfile = {path:?}\n\n[[task]]\nlabel = {label:?}\n# `kgfleet task show FILE --expanded` prints what this \
         preset says.\nlike = \"text-to-sparql\"\ngraph = \"main\"\n# Your own questions: in a file with a row for each,\n# \
         cases.file = \"questions.jsonl\"\n# or here. These were made from the graph: replace them.\n",
        label = format!("{name}-sparql"),
    );
    for (number, (question, query)) in cases.iter().enumerate() {
        let _ = write!(
            text,
            "[[task.case]]\nid = \"{}\"\nquestion = {question:?}\nsparql = '''{query}'''\n",
            number + 1
        );
    }
    Ok(text)
}

/// The text of a new file without a graph.
pub fn answer_word(name: &str, canary: &str) -> String {
    let mut text = head(name, canary);
    let _ = write!(
        text,
        "[[task]]\nlabel = {label:?}\n# `kgfleet task show FILE --expanded` prints what this preset says.\nlike = \
         \"answer-word\"\n# Your own questions: in a file with a row for each, `cases.file = \"questions.jsonl\"`, or \
         here.\n[[task.case]]\nid = \"colour\"\nquestion = \"Which colour do you get from blue and yellow?\"\nanswer = \
         \"green\"\n[[task.case]]\nid = \"legs\"\nquestion = \"What has four legs and a back, and is sat on by one \
         person?\"\nanswer = \"chair\"\n",
        label = format!("{name}-words"),
    );
    text
}

fn head(name: &str, canary: &str) -> String {
    format!(
        "# A task file: docs/task-files.md says what it may hold. Try: kgfleet task check FILE\ntask_file = 1\nname = \
         {name:?}\nversion = \"1\"\n# Who may do what with it, as an SPDX expression: CC0-1.0, CC-BY-4.0, ...\nlicence = \
         \"\"\n# A model that can recite this line has seen this file.\ncanary = {canary:?}\n\n"
    )
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

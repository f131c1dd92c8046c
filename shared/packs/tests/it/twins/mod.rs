//! Tasks of the class Text2Sparql beside declared tasks that ask and judge the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use packs::task_files::compile;
use packs::{GraphSource, Pack};
use serde_json::json;
use tasks::{CaseData, Task};

const CLASS: &str = "Text2SparqlExecEvalList";

/// A task and its declared twin.
pub struct Twins {
    pub own: Task,
    pub declared: Task,
    /// The cases that both have: their numbers in the task, in the order of the twin.
    pub cases: Vec<usize>,
}

/// Every task of the built-in pack that has a twin: a graph that a generator makes is in no file.
pub fn all() -> Vec<Twins> {
    let pack = Pack::builtin().unwrap();
    let library = pack.graphs().unwrap().build();
    let own = pack.build_selected(&library, |task| task.class.starts_with(CLASS)).unwrap();
    own.into_iter().filter_map(|own| twins(&pack, own)).collect()
}

fn twins(pack: &Pack, own: Task) -> Option<Twins> {
    let (mut cases, mut rows) = (Vec::new(), Vec::new());
    for (number, case) in own.cases().iter().enumerate() {
        let Some(graph) = graph(pack, &case.data) else { continue };
        let data = &case.data.data;
        let (id, question, sparql) = (number.to_string(), &data["question"], &data["refSparql"]);
        rows.push(json!({ "id": id, "question": question, "sparql": sparql, "graph": graph }).to_string());
        cases.push(number);
    }
    if cases.is_empty() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rows.jsonl"), rows.join("\n")).unwrap();
    let file = format!(
        "task_file = 1\nname = 'twin'\n[[task]]\nlabel = '{}'\nlike = 'text-to-sparql'\ngraph_field = 'graph'\n\
         cases.file = 'rows.jsonl'\nreadable = 0.2\nrounds = 1\n[[task.check]]\nkind = 'rows'\ncompare = 'cells'\n\
         expect.query_field = 'sparql'\n",
        own.label
    );
    let path = folder.path().join("twin.toml");
    std::fs::write(&path, file).unwrap();
    let compiled = compile(&path).unwrap_or_else(|mistakes| panic!("{}: {mistakes}", own.label));
    let declared = compiled.pack.build().unwrap().pop().unwrap();
    Some(Twins { own, declared, cases })
}

/// The graph of a case as a document; nothing of one that a generator makes.
fn graph(pack: &Pack, case: &CaseData) -> Option<String> {
    let text = |field: &str| case.data.get(field)?.as_str().map(str::to_owned);
    if let Some(document) = text("graphTurtle") {
        return Some(document);
    }
    let name = text("graphName")?;
    let found = pack.header().graphs.iter().find(|graph| graph.name == name)?;
    match &found.source {
        GraphSource::Stored { file, .. } => Some(pack.parts().text(file).unwrap().to_owned()),
        GraphSource::Generated { .. } => None,
    }
}

//! What people and models write for declared tasks: task files, and SHACL shapes.

use std::time::Duration;

use rdf::{Graph, PrefixTable, QueryGraph, TimeBudget};

/// Processor time of one validation.
const VALIDATION_TIME: Duration = Duration::from_millis(200);

/// SHACL shapes, which are validated as data too, and compared with themselves as a graph.
pub fn shapes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(graph) = Graph::parse_turtle_with(&text, &PrefixTable::default()) else { return };
    let budget = TimeBudget::begin(VALIDATION_TIME);
    let matched = budget.run(|| rdf::matching::compare(&graph, &graph, &rdf::matching::MatchRule::default()));
    if let Ok(matched) = matched {
        assert!(matched.common <= matched.found && matched.found == matched.expected);
        assert!(!matched.is_exact || matched.common == matched.found, "a graph is the same as itself");
    }
    let Ok(shapes) = rdf::shacl::ShaclShapes::read(&graph) else { return };
    let data = QueryGraph::from_graph(&graph);
    if let Ok(report) = budget.run(|| rdf::shacl::validate(&shapes, &data)) {
        assert!(report.violating <= report.targets);
        assert_eq!(report.conforms(), report.violating == 0);
    }
}

/// A task file: whatever is wrong with it is a mistake with a place, and what compiles can be proven.
pub fn task_file(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("t.toml");
    std::fs::write(&path, bytes).expect("a file can be written");
    match packs::task_files::compile(&path) {
        Ok(compiled) => drop(compiled.prove()),
        Err(mistakes) => assert!(!mistakes.list.is_empty()),
    }
}

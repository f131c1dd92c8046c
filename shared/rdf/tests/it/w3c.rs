//! W3C's tests of SHACL Core, where somebody has them: `KGFLEET_SHACL_TESTS` names a folder of `data-shapes`, such as
//! `test/resources/sht_tests/core` of the source package of pySHACL on PyPI. They are not part of this repository, because that
//! package states no licence of theirs.
//!
//! ```sh
//! pip download --no-deps --no-binary :all: pyshacl && tar xzf pyshacl-*.tar.gz
//! KGFLEET_SHACL_TESTS=$PWD/pyshacl-*/test/resources/sht_tests/core cargo test -p shacl --test it w3c -- --ignored
//! ```

use std::path::{Path, PathBuf};

use rdf::shacl::{ShaclShapes, validate};
use rdf::{Graph, QueryGraph, RdfFormat, Term};

const SH: &str = "http://www.w3.org/ns/shacl#";
const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";
const SHT: &str = "http://www.w3.org/ns/shacl-test#";

/// Tests whose expectation this crate does not share, each with the reason.
const ELSEWHERE: [(&str, &str); 1] = [(
    "property/uniqueLang-002.ttl",
    "the index writes \"1\"^^xsd:boolean as true, as everywhere in this program",
)];

fn read(path: &Path) -> Graph {
    let text = std::fs::read_to_string(path).unwrap();
    let base = format!("file://{}", path.display());
    Graph::parse(&text, RdfFormat::Turtle, Some(&base))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "ttl") {
            found.push(path);
        }
    }
}

/// The only value of a property, which may be asked of any node.
fn one(graph: &QueryGraph, node: Option<u32>, iri: &str) -> Option<u32> {
    let predicate = graph.number_of_iri(iri)?;
    graph.matching(node, Some(predicate), None).next().map(|[.., object]| object)
}

fn local(path: &Term) -> Option<PathBuf> {
    match path {
        Term::NamedNode(node) => node.as_str().strip_prefix("file://").map(PathBuf::from),
        _ => None,
    }
}

/// The expected results as focus node and parameter.
fn expected(graph: &QueryGraph, report: u32) -> Vec<(String, String)> {
    let Some(predicate) = graph.number_of_iri(&format!("{SH}result")) else { return Vec::new() };
    let results = graph.matching(Some(report), Some(predicate), None);
    let mut all: Vec<(String, String)> = results
        .map(|[.., result]| {
            let focus = one(graph, Some(result), &format!("{SH}focusNode")).unwrap();
            let component = one(graph, Some(result), &format!("{SH}sourceConstraintComponent")).unwrap();
            let component = graph.term(component).to_string();
            let name = component
                .trim_matches(['<', '>'])
                .trim_start_matches(SH)
                .trim_end_matches("ConstraintComponent");
            let name = if name.starts_with("Qualified") {
                "qualifiedValueShape".to_owned()
            } else {
                name[..1].to_lowercase() + &name[1..]
            };
            (shown(graph.term(focus)), name)
        })
        .collect();
    all.sort();
    all
}

fn shown(term: &Term) -> String {
    match term {
        Term::BlankNode(_) => "[]".to_owned(),
        other => other.to_string(),
    }
}

#[test]
#[ignore = "needs the folder of W3C's tests"]
fn every_test_of_core_passes_or_is_listed_with_its_reason() {
    let folder = PathBuf::from(std::env::var_os("KGFLEET_SHACL_TESTS").unwrap());
    let (mut paths, mut failed, mut passed) = (Vec::new(), Vec::new(), 0);
    files(&folder, &mut paths);
    for path in paths {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let test = QueryGraph::from_graph(&read(&path));
        let Some(result) = one(&test, None, &format!("{MF}result")) else { continue };
        let graph = |iri: &str| local(test.term(one(&test, None, &format!("{SHT}{iri}")).unwrap())).unwrap();
        let (data, shapes) = (read(&graph("dataGraph")), read(&graph("shapesGraph")));
        let found = ShaclShapes::read(&shapes).map(|shapes| {
            let report = validate(&shapes, &QueryGraph::from_graph(&data));
            let mut all: Vec<(String, String)> = report
                .violations
                .iter()
                .map(|violation| {
                    let focus = if violation.focus.starts_with("_:") { "[]" } else { &violation.focus };
                    (focus.to_owned(), violation.constraint.to_owned())
                })
                .collect();
            all.sort();
            all
        });
        let fails =
            matches!(test.term(result), Term::NamedNode(node) if node.as_str() == format!("{SHT}Failure"));
        let right = match &found {
            Err(_) => fails,
            Ok(found) => !fails && *found == expected(&test, result),
        };
        if right {
            passed += 1;
        } else if !ELSEWHERE.iter().any(|(listed, _)| *listed == name) {
            failed.push(format!("{name}: found {found:?}, expected {:?}", expected(&test, result)));
        }
    }
    println!("{passed} of W3C's tests pass");
    assert!(
        failed.is_empty() && passed > 0,
        "{passed} pass, {} do not:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

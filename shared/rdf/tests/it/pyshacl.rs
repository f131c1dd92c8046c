//! A second opinion: random shapes over random graphs, with the nodes in which pySHACL found violations. `pyshacl_cases.py`, beside
//! this file, wrote them.

use std::collections::BTreeSet;

use rdf::shacl::{ShaclShapes, validate};
use rdf::{Graph, Literal, NamedNode, PrefixTable, QueryGraph, Term};
use serde_json::Value;

fn graph(text: &str) -> Graph {
    let mut prefixes = PrefixTable::new();
    for (prefix, namespace) in [
        ("", "http://e/"),
        ("sh", "http://www.w3.org/ns/shacl#"),
        ("xsd", "http://www.w3.org/2001/XMLSchema#"),
        ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ] {
        prefixes.insert(prefix, namespace);
    }
    Graph::parse_turtle_with(text, &prefixes).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A node in one form: rdflib and this program write some literals differently.
fn same(node: &str) -> String {
    let parsed = graph(&format!(":s :p {node} ."));
    match &parsed.iter().next().unwrap().object {
        Term::Literal(literal) if literal.language().is_none() => {
            let datatype = literal.datatype().as_str();
            let lexical = rdf::literal::value_text(literal.value(), datatype);
            let lexical = lexical.unwrap_or_else(|| literal.value().to_owned());
            Literal::new_typed_literal(lexical, NamedNode::new(datatype).unwrap()).to_string()
        }
        other => other.to_string(),
    }
}

#[test]
fn random_shapes_find_what_pyshacl_finds() {
    let (mut cases, mut violated, mut different) = (0, 0, Vec::new());
    for line in include_str!("pyshacl.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| case[name].as_str().unwrap();
        let shapes =
            ShaclShapes::read(&graph(text("shapes"))).unwrap_or_else(|error| panic!("{error}\n{line}"));
        let report = validate(&shapes, &QueryGraph::from_graph(&graph(text("data"))));
        let expected: BTreeSet<String> =
            case["violating"].as_array().unwrap().iter().map(|node| same(node.as_str().unwrap())).collect();
        let found: BTreeSet<String> =
            report.violations.iter().map(|violation| same(&violation.focus)).collect();
        cases += 1;
        violated += usize::from(!expected.is_empty());
        if found != expected {
            different.push(format!("{line}\n  found {found:?}"));
        }
    }
    assert!(different.is_empty(), "{} of {cases} differ:\n{}", different.len(), different.join("\n"));
    assert!(cases >= 1_000 && violated > cases / 4 && violated < cases, "{violated} of {cases} violate");
}

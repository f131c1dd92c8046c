//! The rules of SHACL Core, one graph of shapes and the nodes that violate it for each.

use std::fmt::Write;

use crate::{Graph, PrefixTable, QueryGraph, TimeBudget};
use proptest::prelude::*;

use crate::shacl::{ShaclShapes, ShapesError, ValidationReport, validate};

fn graph(text: &str) -> Graph {
    let mut prefixes = PrefixTable::new();
    for (prefix, namespace) in [
        ("", "http://e/"),
        ("sh", "http://www.w3.org/ns/shacl#"),
        ("xsd", "http://www.w3.org/2001/XMLSchema#"),
        ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
        ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ] {
        prefixes.insert(prefix, namespace);
    }
    Graph::parse_turtle_with(text, &prefixes).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn report(shapes: &str, data: &str) -> ValidationReport {
    let shapes = ShaclShapes::read(&graph(shapes)).unwrap_or_else(|error| panic!("{error}\n{shapes}"));
    validate(&shapes, &QueryGraph::from_graph(&graph(data)))
}

/// The names of the nodes that violate shapes, one letter each.
fn violating(shapes: &str, data: &str) -> String {
    let mut nodes: Vec<String> =
        report(shapes, data).violating_nodes.iter().map(|node| node.replace("http://e/", "")).collect();
    nodes.sort();
    nodes.iter().map(|node| node.trim_matches(['<', '>'])).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_constraint_has_nodes_that_keep_it_and_nodes_that_do_not() {
    for line in include_str!("constraints.jsonl").lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect(line);
        let [constraint, data, expected] =
            ["constraint", "data", "violating"].map(|name| row[name].as_str().unwrap());
        let shapes = format!(":S sh:targetSubjectsOf :p ; sh:property [ sh:path :p ; {constraint} ] .");
        assert_eq!(violating(&shapes, data), expected, "{constraint}");
    }
}

#[test]
fn paths_lead_where_they_say() {
    let data = ":a :p :b . :b :p :c . :c :p :a . :a :q :d . :e :q :a . :d :r 'x' .";
    for (path, expected) in [
        (":p", 1),
        ("[ sh:inversePath :p ]", 1),
        ("(:p :p)", 1),
        ("(:q :r)", 1),
        ("[ sh:alternativePath (:p :q) ]", 2),
        ("[ sh:zeroOrMorePath :p ]", 3),
        ("[ sh:oneOrMorePath :p ]", 3),
        ("[ sh:zeroOrOnePath :p ]", 2),
        ("[ sh:inversePath [ sh:zeroOrMorePath [ sh:alternativePath (:p :q) ] ] ]", 4),
        ("[ sh:inversePath (:q :p) ]", 0),
        ("([ sh:inversePath :q ] :q)", 1),
    ] {
        let at_least = |count: usize| {
            let shapes = format!(
                ":S sh:targetNode :a ; sh:property [ sh:path {path} ; sh:minCount {count} ; sh:maxCount {count} ] ."
            );
            report(&shapes, data).conforms()
        };
        assert!(at_least(expected) && !at_least(expected + 1), "{path}");
    }
}

#[test]
fn targets_are_what_shapes_are_about() {
    let data = ":a a :K ; :p :x . :b a :L . :L rdfs:subClassOf :K . :c :p :y . :d :q 1 .";
    for (target, expected) in [
        ("sh:targetClass :K", "a b"),
        ("sh:targetNode :a, :nowhere, 'text'", "\"text\" a nowhere"),
        ("sh:targetSubjectsOf :p", "a c"),
        ("sh:targetObjectsOf :p", "x y"),
    ] {
        let shapes = format!(":S {target} ; sh:property [ sh:path :never ; sh:minCount 1 ] .");
        assert_eq!(violating(&shapes, data), expected, "{target}");
    }
    let implicit = ":K a rdfs:Class, sh:NodeShape ; sh:property [ sh:path :never ; sh:minCount 1 ] .";
    assert_eq!(violating(implicit, data), "a b");
    let without = report(":S a sh:NodeShape ; sh:property [ sh:path :never ; sh:minCount 1 ] .", data);
    assert!(without.conforms() && without.targets == 0, "who is about nothing accepts everything");
    let shapes = ShaclShapes::read(&graph(":S a sh:NodeShape .")).unwrap();
    assert!(!shapes.have_target() && shapes.len() == 1 && !shapes.is_empty());
}

#[test]
fn shapes_may_be_closed_and_qualified_values_apart() {
    let closed = ":S sh:targetClass :K ; sh:closed true ; sh:ignoredProperties (rdf:type) ; sh:property [ sh:path :p ] .";
    assert_eq!(violating(closed, ":a a :K ; :p 1 . :b a :K ; :p 1 ; :q 2 ."), "b");
    let hand = |name: &str, class: &str| {
        format!(
            "sh:property [ sh:path :finger ; sh:qualifiedValueShape [ sh:class {class} ] ; sh:qualifiedMinCount 1 ; \
                 sh:qualifiedValueShapesDisjoint true ; sh:name '{name}' ]"
        )
    };
    let shapes =
        format!(":S sh:targetClass :Hand ; {} ; {} .", hand("one", ":Thumb"), hand("two", ":Finger"));
    assert_eq!(
        violating(
            &shapes,
            ":a a :Hand ; :finger :t, :f . :t a :Thumb . :f a :Finger . :b a :Hand ; :finger :x . :x a :Thumb, :Finger ."
        ),
        "b"
    );
}

#[test]
fn a_report_names_focus_property_value_and_constraint() {
    let found = report(
        ":S sh:targetClass :K ; sh:property [ sh:path :p ; sh:maxInclusive 3 ; sh:minCount 1 ] .",
        ":a a :K ; :p 5, 2 . :b a :K .",
    );
    let told: Vec<String> = found
        .violations
        .iter()
        .map(|violation| {
            format!(
                "{} {:?} {:?} {}",
                violation.focus, violation.property, violation.value, violation.constraint
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "<http://e/a> Some(\"http://e/p\") Some(\"\\\"5\\\"^^<http://www.w3.org/2001/XMLSchema#integer>\") maxInclusive",
            "<http://e/b> Some(\"http://e/p\") None minCount",
        ]
    );
    assert_eq!((found.targets, found.violating, found.violations_count), (2, 2, 2));
}

#[test]
fn what_cannot_be_used_is_refused_with_its_reason() {
    for (shapes, expected) in [
        (":S sh:targetClass :K ; sh:sparql [ sh:select 'x' ] .", "`sh:sparql` is not SHACL Core"),
        (":S sh:target [] .", "`sh:target` is not SHACL Core"),
        (":S sh:targetClass :K ; sh:node :S .", "refers to itself"),
        (":S sh:property :P . :P sh:path :p ; sh:node [ sh:not :S ] .", "refers to itself"),
        (":S sh:property [ sh:minCount 1 ] .", "no `sh:path`"),
        (":S sh:property [ sh:name 'x' ] .", "without `sh:path`"),
        (":S sh:property [ sh:path :p ; sh:minCount 'one' ] .", "no whole number"),
        (":S sh:property [ sh:path :p ; sh:minCount 1, 2 ] .", "several values of `sh:minCount`"),
        (":S sh:property [ sh:path [ :p :q ] ] .", "is no list"),
        (":S sh:property [ sh:path (:p) ] .", "fewer than two"),
        (":S sh:property [ sh:path :p ; sh:in :x ] .", "is no list"),
        (":S sh:property [ sh:path :p ; sh:in _:l ] . _:l rdf:first 1 ; rdf:rest _:l .", "is no list"),
        (":S sh:property [ sh:path :p ; sh:nodeKind :x ] .", "unknown `sh:nodeKind`"),
        (":S sh:property [ sh:path :p ; sh:pattern '(?=x)' ] .", "look-around"),
        (":S sh:property [ sh:path :p ; sh:pattern 'x' ; sh:flags 'z' ] .", "the flag `z`"),
        (":S sh:property [ sh:path :p ; sh:class 'K' ] .", "no IRI"),
        (":S sh:not 'x' .", "is a literal"),
    ] {
        let error = ShaclShapes::read(&graph(shapes)).unwrap_err().to_string();
        assert!(error.contains(expected), "{shapes}: {error}");
    }
}

#[test]
fn hostile_shapes_end() {
    let chain = |length: usize| {
        let mut text = ":S0 sh:targetNode :a . ".to_owned();
        (0..length).for_each(|n| write!(text, ":S{n} sh:node :S{} . ", n + 1).unwrap());
        text
    };
    assert!(ShaclShapes::read(&graph(&chain(50))).is_ok());
    assert_eq!(ShaclShapes::read(&graph(&chain(2_000))).unwrap_err(), ShapesError::TooDeep);
    let many: String = (0..20_000).map(|n| format!(":S{n} sh:targetNode :a . ")).collect();
    assert_eq!(ShaclShapes::read(&graph(&many)).unwrap_err(), ShapesError::TooMany);
    // Each level asks the next one twice: without remembering, two to the power of thirty questions.
    let mut wide = ":S0 sh:targetNode :a . :S30 sh:class :K . ".to_owned();
    (0..30).for_each(|n| write!(wide, ":S{n} sh:or (:S{} [ sh:node :S{} ]) . ", n + 1, n + 1).unwrap());
    assert!(!report(&wide, ":a :p 1 .").conforms());
    // A path of quadratic work on a ring, cut off by the clock.
    let ring: String = (0..3_000).map(|n| format!(":n{n} :p :n{} . ", (n + 1) % 3_000)).collect();
    let all = ShaclShapes::read(&graph(
        ":S sh:targetSubjectsOf :p ; sh:property [ sh:path ([ sh:zeroOrMorePath :p ] [ sh:zeroOrMorePath :p ]) ; sh:minCount 1 ] .",
    ))
    .unwrap();
    let data = QueryGraph::from_graph(&graph(&ring));
    let budget = TimeBudget::begin(std::time::Duration::from_millis(50));
    assert_eq!(budget.run(|| validate(&all, &data).targets), Err(crate::OutOfTime));
}

proptest! {
    #[test]
    fn constraints_combine_as_logic_does(
        triples in prop::collection::vec((0u8..4, 0u8..2, 0u8..6), 1..20),
        (one, other) in (0usize..6, 0usize..6),
    ) {
        const SIMPLE: [&str; 6] = [
            "sh:nodeKind sh:IRI", "sh:minInclusive 2", "sh:in (:n0 :n1 3)", "sh:class :K", "sh:hasValue :n1",
            "sh:property [ sh:path :p1 ; sh:minCount 1 ]",
        ];
        let value = |n: u8| if n < 4 { format!(":n{n}") } else { (n - 2).to_string() };
        let data: String = triples.iter().map(|(s, p, o)| format!(":n{s} :p{p} {} . ", value(*o))).collect();
        let data = format!("{data} :n0 a :K .");
        let all = "sh:targetNode :n0, :n1, :n2, :n3, 2, 3";
        let accepted = |constraint: &str| -> std::collections::BTreeSet<String> {
            let found = report(&format!(":S {all} ; {constraint} ."), &data);
            ["n0", "n1", "n2", "n3"].iter().map(|name| format!("<http://e/{name}>"))
                .chain(["2", "3"].iter().map(|n| format!("\"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>")))
                .filter(|node| !found.violating_nodes.contains(node)).collect()
        };
        let (one, other) = (SIMPLE[one], SIMPLE[other]);
        let (a, b) = (accepted(one), accepted(other));
        prop_assert_eq!(accepted(&format!("sh:and ([ {one} ] [ {other} ])")), &a & &b);
        prop_assert_eq!(accepted(&format!("sh:or ([ {one} ] [ {other} ])")), &a | &b);
        prop_assert_eq!(accepted(&format!("sh:xone ([ {one} ] [ {other} ])")), &a ^ &b);
        prop_assert_eq!(accepted(&format!("sh:node [ {one} ]")), a.clone());
        prop_assert_eq!(accepted(&format!("sh:not [ sh:not [ {one} ] ]")), a.clone());
        let not = accepted(&format!("sh:not [ {one} ]"));
        prop_assert!(not.is_disjoint(&a), "{:?} {:?}", not, a);
    }
}

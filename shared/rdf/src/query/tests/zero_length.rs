//! Paths of no length from and to terms that no triple has.

use super::{short, table};
use crate::query::*;
use crate::{Graph, RdfFormat};

const DATA: &str = "@prefix : <http://e/> . :a :p :b . :b :p :c . :c :q 'x' .";

/// The rows of a query in both dialects, sorted: local names and texts.
fn rows(text: &str, expected: &[&str]) {
    let graph = QueryGraph::from_graph(&Graph::parse(DATA, RdfFormat::Turtle, None).unwrap());
    for dialect in [Dialect::Standard, Dialect::Rdflib] {
        let prepared = prepare(text, &table(), dialect).unwrap_or_else(|error| panic!("{error}: {text}"));
        let found = prepared.execute(&graph, &QueryLimits::default()).unwrap();
        let cell = |value: Option<Value>| value.map_or_else(|| "-".to_owned(), short);
        let mut rows: Vec<String> = found
            .rows
            .into_iter()
            .map(|row| row.into_iter().map(cell).collect::<Vec<_>>().join(" "))
            .collect();
        rows.sort();
        assert_eq!(rows, expected, "{dialect:?}: {text}");
    }
}

#[test]
fn a_term_that_no_triple_has_reaches_itself() {
    rows("SELECT ?x { :none :p* ?x }", &["none"]);
    rows("SELECT ?x { ?x :p* :none }", &["none"]);
    rows("SELECT ?x { :none :p? ?x }", &["none"]);
    rows("SELECT ?x { :none (:p|:q*) ?x }", &["none"]);
    rows("SELECT ?x { :none (:p|:q)* ?x }", &["none"]);
    rows("SELECT ?x { :none :p*/:q* ?x }", &["none"]);
    rows("SELECT ?x { :none :p*/:q*/:p? ?x }", &["none"]);
    rows("SELECT ?x { :none ^:p* ?x }", &["none"]);
    rows("SELECT ?x { :none :p+ ?x }", &[]);
    rows("SELECT ?x { :none :p*/:q ?x }", &[]);
    rows("SELECT ?x { :a :p ?x . :none :p* :none }", &["b"]);
    rows("SELECT ?x { :a :p ?x . :none :p* :other }", &[]);
    rows("SELECT ?x { :a :p ?x . :none :p* [] }", &["b"]);
}

#[test]
fn a_term_of_the_graph_reaches_what_it_did() {
    rows("SELECT ?x { :a :p* ?x }", &["a", "b", "c"]);
    rows("SELECT ?x { ?x :p* :b }", &["a", "b"]);
    rows("SELECT ?x { :b :p? ?x }", &["b", "c"]);
    rows("SELECT ?x ?y { ?x :p? ?y FILTER(?x = :b) }", &["b b", "b c"]);
}

#[test]
fn so_do_terms_that_the_query_binds() {
    rows("SELECT ?x ?y { VALUES ?x { :none :b } ?x :p* ?y }", &["b b", "b c", "none none"]);
    rows("SELECT ?x ?y { VALUES ?y { :none :b } ?x :p? ?y }", &["a b", "b b", "none none"]);
    rows("SELECT ?y { BIND(:none AS ?x) ?x :p* ?y }", &["none"]);
    rows("SELECT ?y { BIND(IRI('http://e/none') AS ?x) ?x :p* ?y }", &["none"]);
    rows("SELECT ?y { BIND(:none AS ?z) BIND(?z AS ?x) ?x :p* ?y }", &["none"]);
    rows("SELECT ?y { VALUES ?x { :none } ?x :p*/:q* ?y }", &["none"]);
    rows("SELECT ?x ?y { VALUES (?x ?y) { (:none :none) (:none :a) } ?x :p* ?y }", &["none none"]);
    rows("SELECT ?x { VALUES ?x { :none } ?x :p* ?x }", &["none"]);
    rows("SELECT ?x ?y { VALUES ?x { :none } OPTIONAL { ?x :p* ?y } }", &["none none"]);
    rows("SELECT ?x { VALUES ?x { :none } FILTER EXISTS { ?x :p* ?x } }", &["none"]);
    rows("SELECT ?x { VALUES ?x { :none } FILTER NOT EXISTS { ?x :p* ?y } }", &[]);
    rows("SELECT ?y { VALUES ?x { :none } { ?x :p* ?y } UNION { ?x :q ?y } }", &["none"]);
    rows("SELECT ?y { VALUES ?x { 7 } ?x :p* ?y }", &["7"]);
    rows("SELECT ?k { :a ?k ?y . ?k :sub* ?k }", &["p"]);
}

#[test]
fn nothing_is_added_where_nothing_binds_the_end() {
    rows(
        "SELECT ?x ?y { { ?x :p ?y } UNION { VALUES ?x { :none } } UNION { ?x :q* ?y FILTER(?x = :none) } }",
        &["a b", "b c", "none -"],
    );
}

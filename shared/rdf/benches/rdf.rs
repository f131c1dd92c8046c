//! How long the steps of one evaluation take, and the loading of a large graph.

use harness::timing::timed;
use rdf::{Dialect, Graph, PrefixTable, QueryGraph, QueryLimits, RdfFormat, prepare};
use std::fmt::Write;
use std::hint::black_box;

/// A staff directory in Turtle: three triples per person.
fn directory(people: usize) -> String {
    let mut text = String::from("@prefix : <http://example.org/staff/> .\n");
    for n in 0..people {
        let _ = writeln!(text, ":p{n} a :Person ; :name \"Person {n}\" ; :boss :p{} .", n / 7);
    }
    text
}

fn graph(people: usize) -> Graph {
    Graph::parse(&directory(people), RdfFormat::Turtle, None).unwrap_or_default()
}

const QUERY: &str = "SELECT ?name WHERE { ?x a :Person ; :name ?name ; :boss ?y . ?y :name \"Person 1\" }";

fn main() {
    let mut prefixes = PrefixTable::rdflib_defaults();
    prefixes.insert("", "http://example.org/staff/");
    let limits = QueryLimits::default();
    let small = directory(10);

    timed("parse 30 triples of Turtle", None, || Graph::parse(black_box(&small), RdfFormat::Turtle, None));
    timed("prepare a query", None, || prepare(black_box(QUERY), &prefixes, Dialect::Rdflib));
    timed("parse, index, prepare and execute on 30 triples", None, || {
        let graph =
            Graph::parse(black_box(&small), RdfFormat::Turtle, None).map(|g| QueryGraph::from_graph(&g));
        let query = prepare(QUERY, &prefixes, Dialect::Rdflib);
        graph.ok().zip(query.ok()).map(|(graph, query)| query.execute(&graph, &limits))
    });

    let xml = graph(33_334).serialize(RdfFormat::RdfXml, &prefixes);
    timed("load 100 000 triples from RDF/XML", None, || {
        Graph::parse(&xml, RdfFormat::RdfXml, None).map(|graph| QueryGraph::from_graph(&graph))
    });
    let large = QueryGraph::from_graph(&graph(33_334));
    if let Ok(query) = prepare(QUERY, &prefixes, Dialect::Rdflib) {
        timed("execute a join on 100 000 triples", None, || query.execute(&large, &limits));
    }
}

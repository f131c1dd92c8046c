//! Queries from text to result.

mod rows;

use super::*;
use crate::{Graph, PrefixTable, RdfFormat};
use std::time::Duration;

const DATA: &str = "@prefix : <http://e/> .
    :a :name 'Ann' ; :age 31 ; :knows :b, :c ; :score 2.5e0 ; :label 'Anna'@en .
    :b :name 'Bob' ; :age 27 ; :knows :c .
    :c :name 'Cid' ; :age 44 .";

fn graph() -> QueryGraph {
    QueryGraph::from_graph(&Graph::parse(DATA, RdfFormat::Turtle, None).unwrap())
}

fn table() -> PrefixTable {
    let mut table = PrefixTable::rdflib_defaults();
    table.insert("", "http://e/");
    table
}

fn run(text: &str) -> Result<Solutions, ExecutionError> {
    run_as(Dialect::Rdflib, text)
}

fn run_as(dialect: Dialect, text: &str) -> Result<Solutions, ExecutionError> {
    prepare(text, &table(), dialect)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .execute(&graph(), &QueryLimits::default())
}

/// What a query of a Turtle document comes to, short: `refused`, `raised`, `failed`, or the sorted local names and texts of its cells.
fn found_in(document: &str, dialect: Dialect, text: &str) -> String {
    let graph = QueryGraph::from_graph(&Graph::parse(document, RdfFormat::Turtle, None).unwrap());
    let Ok(prepared) = prepare(text, &table(), dialect) else { return "refused".to_owned() };
    match prepared.execute(&graph, &QueryLimits::default()) {
        Err(ExecutionError::Raised) => "raised".to_owned(),
        Err(_) => "failed".to_owned(),
        Ok(solutions) => {
            let mut cells: Vec<String> = solutions.rows.into_iter().flatten().flatten().map(short).collect();
            cells.sort();
            cells.join(" ")
        }
    }
}

fn short(value: Value) -> String {
    match value {
        Value::Iri(iri) => iri_suffix(&iri).to_owned(),
        Value::Literal { lexical, .. } => lexical,
        Value::Blank(_) => "_".to_owned(),
    }
}

fn values(text: &str) -> String {
    found_in(DATA, Dialect::Rdflib, text)
}

fn refused(text: &str) -> QuerySyntaxError {
    prepare(text, &table(), Dialect::Rdflib).expect_err(text)
}

fn fails(text: &str) {
    assert!(
        matches!(run_as(Dialect::Rdflib, text), Err(ExecutionError::Evaluation(_) | ExecutionError::Raised)),
        "{text}"
    );
}

#[test]
fn rows_that_bind_nothing_are_dropped() {
    assert!(run("SELECT ?z { ?x :age ?a }").unwrap().rows.is_empty());
    assert_eq!(run("SELECT ?x ?z { ?x :age ?a }").unwrap().rows.len(), 3);
}

#[test]
fn odd_projections_are_evaluated_as_rdflib_does() {
    let text = "SELECT ?x (COUNT(?y) AS ?n) { ?x :knows ?y FILTER(?x = :a) }";
    assert_eq!(values(text), "2 a");
    assert_eq!(run(text).unwrap().variables, ["x", "n"]);
    assert_eq!(run("SELECT ?n { ?x :name ?n BIND(LCASE(?n) AS ?n) }").unwrap().variables, ["n"]);
    assert_eq!(run("SELECT ?x ?x { ?x :age 31 }").unwrap().variables, ["x"]);
    assert_eq!(values("SELECT (LCASE(?n) AS ?n) { :a :name ?n }"), "ann");
}

#[test]
fn services_are_errors_even_when_silent() {
    fails("SELECT * { SERVICE <http://example.org/sparql> { ?a ?b ?c } }");
    fails("SELECT * { SERVICE SILENT <http://example.org/sparql> { ?a ?b ?c } }");
}

#[test]
fn syntax_errors_say_where_and_what() {
    let error = refused("SELECT ?x\nWHERE { ?x :age ?a ;; } LIMIT ten");
    assert_eq!((error.line, error.column), (Some(2), Some(31)));
    assert_eq!(error.unexpected, "ten");
    assert_eq!(error.message, "Expected SelectQuery, found 'ten'  (at char 40), (line:2, col:31)");
    let error = refused("SELECT ?x { ?x :age ?a");
    assert!(error.message.contains("found end of text"), "{error}");
    assert_eq!(error.unexpected, "");
}

#[test]
fn an_unknown_prefix_is_named() {
    let error = refused("SELECT ?x { ?x nope:age ?y }");
    assert_eq!(error.unknown_prefix.as_deref(), Some("nope"));
    assert_eq!(error.message, "Unknown namespace prefix : nope");
    assert_eq!(refused("SELECT ?x { ?x nope:age }").unknown_prefix, None);
}

#[test]
fn wikidata_leniency_is_only_for_wikidata() {
    let text = "SELECT ?x { ?x :age ?a FILTER(CONTAINS(?a, '3')) SERVICE wikibase:label { :a :b :c } }";
    let mut prefixes = table();
    prefixes.insert("wikibase", "http://wikiba.se/ontology#");
    let run = |dialect| prepare(text, &prefixes, dialect).unwrap().execute(&graph(), &QueryLimits::default());
    assert_eq!(run(Dialect::Wikidata).unwrap().rows.len(), 1);
    assert!(run(Dialect::Rdflib).is_err());
}

/// Products that no longer read the graph, in all the ways that a cancellation between reads would miss.
#[test]
fn a_deadline_ends_every_kind_of_product() {
    let text: String = (0..2000).map(|n| format!("<http://s/{n}> <http://p> <http://o/{n}> .\n")).collect();
    let graph = QueryGraph::from_graph(&Graph::parse(&text, RdfFormat::NTriples, None).unwrap());
    let limits = QueryLimits { deadline: Some(Duration::from_millis(50)), rows_max: usize::MAX };
    let product = "{ ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }";
    for query in [
        "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(?a = ?i) }".to_owned(),
        format!("SELECT * {product} ORDER BY ?a ?d"),
        format!("SELECT (COUNT(*) AS ?n) {product}"),
        format!("SELECT ?a (COUNT(DISTINCT ?i) AS ?n) {product} GROUP BY ?a"),
        format!("SELECT DISTINCT ?b {product}"),
    ] {
        let prepared = prepare(&query, &PrefixTable::new(), Dialect::Rdflib).unwrap();
        assert_eq!(prepared.execute(&graph, &limits), Err(ExecutionError::TimedOut), "{query}");
    }
    assert_eq!(ExecutionError::TimedOut.to_string(), "A time out occurred");
}

#[test]
fn rows_have_a_limit() {
    let limits = QueryLimits { deadline: None, rows_max: 2 };
    let query = prepare("SELECT * { ?x :age ?a }", &table(), Dialect::Rdflib).unwrap();
    assert_eq!(query.execute(&graph(), &limits), Err(ExecutionError::RowLimit { max: 2 }));
}

/// Shapes at the limits of the scan, on the smallest stack that threads have by default (2 MB).
#[test]
fn the_deepest_queries_let_through_do_not_overflow_the_stack() {
    let limits = crate::ScanLimits::query();
    let nest = |open: &str, core: &str, close: &str, levels: usize| {
        format!("SELECT * {{ {}{core}{} }}", open.repeat(levels), close.repeat(levels))
    };
    let depth = limits.depth_max - 4;
    let chain = |text: &str| text.repeat(limits.links_max - 10);
    let queries = [
        nest("{", "?a ?b ?c", "}", depth),
        nest("OPTIONAL {", "?a ?b ?c", "}", depth),
        nest("{ ?a ?b ?c } UNION {", "?a ?b ?c", "}", depth),
        format!("SELECT * {{ ?a {}<http://p>{} ?b }}", "(".repeat(depth), ")*".repeat(depth)),
        format!("SELECT * {{ ?a <http://p>{} ?b }}", chain("/<http://p>")),
        format!("SELECT * {{ ?a <http://p>{} ?b }}", chain("|<http://p>")),
        format!("SELECT * {{ ?a ?b ?c FILTER(?a = 1{}) }}", chain(" || 1")),
        format!("SELECT * {{ ?a ?b ?c FILTER(?a = 1{}) }}", chain(" + 1")),
        format!("SELECT * {{ ?a ?b ?c FILTER({}?a) }}", "!".repeat(depth)),
        format!("SELECT * {{ ?a ?b ?c {} }}", chain("OPTIONAL { ?a ?b ?d } ")),
        format!("SELECT * {{ ?a ?b ?c {} }}", chain("FILTER(?a != 1) ")),
        format!("SELECT * {{ ?a ?b ?c {} }}", chain("MINUS { ?c ?d ?e } ")),
        format!("SELECT * {{ {{ ?a ?b ?c }} {} }}", chain("UNION { ?a ?b ?d } ")),
        format!("SELECT * {{ ?a ?b {}1{} }}", "[ ?p ".repeat(depth), "]".repeat(depth)),
        format!("SELECT * {{ ?a ?b {}1{} }}", "(".repeat(depth), ")".repeat(depth)),
    ];
    for text in queries {
        if let Ok(query) = prepare(&text, &table(), Dialect::Rdflib) {
            let limits = QueryLimits { deadline: Some(Duration::from_secs(1)), rows_max: 100 };
            let _ = query.execute(&graph(), &limits);
        }
    }
}

#[test]
fn an_ask_has_an_answer_and_is_no_select() {
    let answer = |text: &str| {
        let prepared = prepare(text, &table(), Dialect::Standard).unwrap();
        prepared.answer(&graph(), &QueryLimits::default())
    };
    assert_eq!(answer("ASK { :a :knows :b }"), Ok(QueryAnswer::Truth(true)));
    assert_eq!(answer("ASK { :b :knows :a }"), Ok(QueryAnswer::Truth(false)));
    assert!(
        matches!(answer("SELECT ?x { :a :knows ?x }"), Ok(QueryAnswer::Rows(found)) if found.rows.len() == 2)
    );
    for refused in [
        "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "DESCRIBE :a",
        "ASK { SERVICE SILENT <http://e/sparql> { ?s ?p ?o } }",
    ] {
        assert!(matches!(answer(refused), Err(ExecutionError::Evaluation(_))), "{refused}");
    }
    for dialect in [Dialect::Standard, Dialect::Rdflib] {
        let published = run_as(dialect, "ASK { :a :knows :b }");
        assert!(matches!(published, Err(ExecutionError::Evaluation(_))), "as the published tasks score it");
    }
}

#[test]
fn an_endless_ask_is_cut_off() {
    let endless = "ASK { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o . ?p ?q ?r . ?s ?t ?u . ?v ?w ?x \
                   FILTER(STR(?a) = CONCAT(STR(?d), STR(?g), STR(?v))) }";
    let limits = QueryLimits { deadline: Some(Duration::from_millis(50)), ..QueryLimits::default() };
    let prepared = prepare(endless, &table(), Dialect::Standard).unwrap();
    assert_eq!(prepared.answer(&graph(), &limits), Err(ExecutionError::TimedOut));
}

#[test]
fn comparisons_within_comparisons_stay_small() {
    let nested = (0..40).fold("?a".to_owned(), |inner, _| format!("({inner} < 1)"));
    assert_eq!(values(&format!("SELECT ?a {{ :a :age ?a FILTER({nested}) }}")), "");
    let listed = (0..40).fold("?a".to_owned(), |inner, _| format!("({inner} IN (1, true))"));
    assert_eq!(values(&format!("SELECT ?a {{ :a :age ?a FILTER({listed}) }}")), "");
}

//! Literals keep their form: what a query hands on is what the graph has.

use super::{Dialect, found_in};

const SHOP: &str = "@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    :tea :price 12.50 ; :sold '2026-03-01T10:30:00.50'^^xsd:dateTime ; :code 007 ; :mass '1.0'^^xsd:double ; :n '5'^^xsd:int .
    :jam :price 9.00 ; :sold '2026-03-01T10:30:00.25'^^xsd:dateTime ; :code 006 ; :mass '0.50'^^xsd:float ; :n '4'^^xsd:int .
    :rye :price 7.25 .";

fn found(dialect: Dialect, text: &str) -> String {
    found_in(SHOP, dialect, text)
}

fn both(text: &str, expected: &str) {
    each(text, expected, expected);
}

fn each(text: &str, rdflib: &str, standard: &str) {
    assert_eq!(found(Dialect::Standard, text), standard, "by the standard: {text}");
    assert_eq!(found(Dialect::Rdflib, text), rdflib, "as rdflib: {text}");
}

#[test]
fn what_an_aggregate_chooses_joins_with_the_graph() {
    for (aggregate, item, price) in [("MAX", "tea", "12.50"), ("MIN", "rye", "7.25")] {
        both(
            &format!(
                "SELECT ?i ?m {{ {{ SELECT ({aggregate}(?p) AS ?m) {{ ?x :price ?p }} }} ?i :price ?m }}"
            ),
            &format!("{price} {item}"),
        );
    }
    both("SELECT ?i { { SELECT (SAMPLE(?p) AS ?m) { :jam :price ?p } } ?i :price ?m }", "jam");
    both("SELECT ?i { { SELECT (MAX(?t) AS ?m) { ?x :sold ?t } } ?i :sold ?m }", "tea");
    both("SELECT ?i { { SELECT (MAX(?n) AS ?m) { ?x :n ?n } } ?i :n ?m }", "tea");
    both(
        "SELECT ?i { { SELECT ?x (MAX(?p) AS ?m) { ?x :price ?p } GROUP BY ?x } ?i :price ?m }",
        "jam rye tea",
    );
    each("SELECT (MAX(?c) AS ?m) { ?x :code ?c }", "7", "007");
}

#[test]
fn a_choice_between_terms_hands_them_on() {
    both("SELECT ?i { :tea :price ?p BIND(IF(?p > 10, ?p, 0 + 1) AS ?m) ?i :price ?m }", "tea");
    both("SELECT ?i { :tea :price ?p BIND(COALESCE(?z + 1, ?p) AS ?m) ?i :price ?m }", "tea");
    both("SELECT ?i { BIND(12.50 AS ?m) ?i :price ?m }", "tea");
    both("SELECT ?i { VALUES ?m { 12.50 } ?i :price ?m }", "tea");
    both("SELECT ?i { ?i :price ?p FILTER(sameTerm(?p, IF(true, 12.50, 0 + 1))) }", "tea");
}

#[test]
fn texts_of_numbers_are_those_of_the_graph() {
    both("SELECT (STR(?p) AS ?s) { ?x :price ?p }", "12.50 7.25 9.00");
    both("SELECT ?x { ?x :price ?p FILTER(STR(?p) = '12.50') }", "tea");
    both("SELECT ?x { ?x :price ?p FILTER(REGEX(STR(?p), '[.]00$')) }", "jam");
    both("SELECT (CONCAT('a', STR(?p)) AS ?s) { ?x :price ?p }", "a12.50 a7.25 a9.00");
    both("SELECT (xsd:string(?p) AS ?s) { ?x :price ?p }", "12.50 7.25 9.00");
    both("SELECT (GROUP_CONCAT(STR(?p)) AS ?s) { :tea :price ?p }", "12.50");
    both("SELECT (STR(12.50) AS ?s) { }", "12.50");
    both("SELECT (xsd:decimal(?p) AS ?s) { :tea :price ?p }", "12.50");
    both("SELECT (STR(?m) AS ?s) { :tea :mass ?m }", "1.0");
    each("SELECT (STR(?c) AS ?s) { :tea :code ?c }", "7", "007");
    each("SELECT ?c { :tea :code ?c }", "7", "007");
    both("SELECT (STR(STRDT('1.50', xsd:decimal)) AS ?s) { }", "1.50");
    both("SELECT ?i { BIND(STRDT('12.50', xsd:decimal) AS ?m) ?i :price ?m }", "tea");
}

#[test]
fn types_are_those_of_the_graph() {
    both("SELECT (DATATYPE(?n) AS ?t) { :tea :n ?n }", "int");
    both("SELECT (DATATYPE(?m) AS ?t) { { SELECT (MAX(?n) AS ?m) { ?x :n ?n } } }", "int");
    both("SELECT (DATATYPE(STRDT('1.50', xsd:decimal)) AS ?t) { }", "decimal");
}

#[test]
fn what_computes_sees_values() {
    both("SELECT ?x { ?x :price ?p FILTER(?p > 8.5 && ?p < 9.500) }", "jam");
    both("SELECT ?x { ?x :price ?p } ORDER BY DESC(?p) LIMIT 1", "tea");
    both("SELECT ?x { ?x :code ?c FILTER(?c + 1 = 8) }", "tea");
    both("SELECT ?x { ?x :price ?p FILTER(IF(true, ?p, ?p) = 12.5) }", "tea");
    both("SELECT ?x { ?x :price ?p FILTER(xsd:decimal(STR(?p)) * 2 = 25) }", "tea");
    both("SELECT ?x { ?x :price ?p FILTER(STRDT(STR(?p), xsd:decimal) > 10) }", "tea");
    both("SELECT ?x { ?x :price ?p FILTER(?p = xsd:decimal('12.500')) }", "tea");
}

#[test]
fn what_is_computed_joins_with_the_same_value_of_the_graph() {
    let by = |text: &str, expected: &str| assert_eq!(found(Dialect::Standard, text), expected, "{text}");
    by("SELECT ?i { BIND(4.50 * 2 AS ?m) ?i :price ?m }", "jam");
    by("SELECT ?i { :tea :price ?p BIND(ABS(?p) AS ?m) ?i :price ?m }", "tea");
    by("SELECT ?i { BIND(3 + 4 AS ?m) ?i :code ?m }", "tea");
}

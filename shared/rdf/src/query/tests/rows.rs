//! Queries with what they come to, a row each in `queries.jsonl`: the rules in which rdflib and the standard differ, each in both
//! (the table in docs/scoring.md); literals, which keep the form that the graph has; paths of no length; and the kinds of the W3C's
//! tests of property paths, aggregates and functions, written anew.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::*;

/// A query over one of the graphs, and what it comes to in a dialect: what [`found_in`] says, or its rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The rule of docs/scoring.md that it shows.
    rule: Option<String>,
    /// What it shows otherwise.
    about: Option<String>,
    /// Why that is so, where it needs words.
    #[serde(rename = "why")]
    _why: Option<String>,
    #[serde(default)]
    data: Data,
    /// Triples beside those of the graph.
    #[serde(default)]
    more: String,
    query: String,
    rdflib: Option<String>,
    standard: Option<String>,
    rows: Option<Vec<String>>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Data {
    #[default]
    Friends,
    Shop,
    Chain,
    W3c,
}

impl Data {
    fn turtle(self) -> &'static str {
        match self {
            Self::Friends => DATA,
            Self::Shop => SHOP,
            Self::Chain => "@prefix : <http://e/> . :a :p :b . :b :p :c . :c :q 'x' .",
            Self::W3c => W3C,
        }
    }
}

const SHOP: &str = "@prefix : <http://e/> . 
    :tea :price 12.50 ; :sold '2026-03-01T10:30:00.50'^^xsd:dateTime ; :code 007 ; :mass '1.0'^^xsd:double ; :n '5'^^xsd:int .
    :jam :price 9.00 ; :sold '2026-03-01T10:30:00.25'^^xsd:dateTime ; :code 006 ; :mass '0.50'^^xsd:float ; :n '4'^^xsd:int .
    :rye :price 7.25 .";

const W3C: &str = "@prefix : <http://e/> .
    :a :p :b . :b :p :c . :c :p :a , :d . :d :q :e . :a :q :c . :a :r 'x' . :l :list ( 1 2 ) .
    :n1 :int 1 , 2 ; :dec 1.0 , 2.2 ; :in :g1 . :n2 :int 3 ; :dec 3.5 ; :dbl 1.0e2 ; :in :g1 .
    :n3 :int 4 ; :bad '1'@en ; :in :g2 .
    :s1 :text 'foo' . :s2 :text 'bar'@en . :s3 :text 'BAZ' . :s4 :text '100%' .
    :d1 :date '2010-06-21T11:28:01Z'^^xsd:dateTime . :d2 :date '2010-12-21T15:38:02-08:00'^^xsd:dateTime .";

fn rows() -> impl Iterator<Item = Row> {
    include_str!("queries.jsonl").lines().map(|line| serde_json::from_str(line).expect(line))
}

/// The rows of a query, sorted: local names and texts.
fn rows_in(document: &str, dialect: Dialect, text: &str) -> Vec<String> {
    let graph = QueryGraph::from_graph(&Graph::parse(document, RdfFormat::Turtle, None).unwrap());
    let prepared = prepare(text, &table(), dialect).unwrap_or_else(|error| panic!("{error}: {text}"));
    let found = prepared.execute(&graph, &QueryLimits::default()).unwrap();
    let cell = |value: Option<Value>| value.map_or_else(|| "-".to_owned(), short);
    let line = |row: Vec<Option<Value>>| row.into_iter().map(cell).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = found.rows.into_iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn every_query_comes_to_what_its_row_says() {
    let mut wrong = Vec::new();
    for Row { rule, about, data, more, query, rdflib, standard, rows, .. } in rows() {
        let about = rule.or(about).expect("each row says what it is about");
        let document =
            format!("@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n{}\n{more}", data.turtle());
        for (dialect, expected) in [(Dialect::Rdflib, rdflib), (Dialect::Standard, standard)] {
            if let Some(expected) = expected {
                let found = found_in(&document, dialect, &query);
                wrong.extend((found != expected).then(|| format!("{about}: {query} {dialect:?}: {found}")));
            }
            if let Some(expected) = &rows {
                let found = rows_in(&document, dialect, &query);
                wrong
                    .extend((found != *expected).then(|| format!("{about}: {query} {dialect:?}: {found:?}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each row of the table in docs/scoring.md names its rule, and each rule has a row there and is shown in both dialects.
#[test]
fn every_rule_is_documented_and_shown_in_both_dialects() {
    let document = include_str!("../../../../../docs/scoring.md");
    let (_, table) = document.split_once("| in a query | as rdflib | by the standard | test |").unwrap();
    let listed = table.trim_start().lines().skip(1).take_while(|line| line.starts_with('|'));
    let named: BTreeSet<String> = listed
        .map(|row| row.trim_end_matches([' ', '|', '`']).rsplit('`').next().unwrap().to_owned())
        .collect();
    let mut rules: BTreeMap<String, bool> = BTreeMap::new();
    for row in rows() {
        if let Some(rule) = row.rule {
            *rules.entry(rule).or_default() |= row.rdflib.is_some() && row.standard.is_some();
        }
    }
    let one_way: Vec<_> = rules.iter().filter(|(_, is_both)| !**is_both).collect();
    assert!(one_way.is_empty(), "these are shown in one dialect only: {one_way:?}");
    assert_eq!(rules.into_keys().collect::<BTreeSet<_>>(), named);
}

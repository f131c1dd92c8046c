//! Invented queries and documents: rdflib's answers, frozen in `tests/differential`, compared with ours.
//!
//! Every difference is in the lists below, with its reason, and in docs/parity.md. To compare with another file that
//! `tests/differential/generate.py run` wrote, set `KGFLEET_DIFFERENTIAL` to it: the test then prints the differences
//! and does not fail.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::Duration;

use rdf::{
    Dialect, ExecutionError, Graph, PrefixTable, QueryGraph, QueryLimits, RdfFormat, Term, Value, prepare,
};
use serde::Deserialize;

/// Seeds whose answers differ, under the reason.
type Listed = &'static [(&'static str, &'static [u32])];

const QUERIES: Listed = &[
    (
        "decimals: rdflib keeps trailing zeros and 28 digits in what it computes",
        &[
            299, 383, 793, 1044, 1073, 1174, 1404, 1411, 1589, 1740, 1837, 1878, 1974, 2359, 2415, 2697,
            2746, 2757, 2804, 2858, 2893, 3080, 3567, 3660, 5000274, 5000275, 5000276, 5000352,
        ],
    ),
    ("times: rdflib writes Z as +00:00", &[986]),
    ("GROUP_CONCAT: the order of its parts", &[121, 132, 2401, 2466, 2507, 3307]),
    ("which row is sampled", &[298, 545, 950, 2136, 2317, 2917, 3126]),
    ("LIMIT where no order decides: which rows come first", &[101, 1117, 1185, 1918, 2111, 2261, 2339, 3398]),
    ("rdflib raises on what Python cannot do with a value", &[1826]),
    ("scopes and comparisons of IRIs as rdflib has them", &[237, 1002, 1145, 2974, 5000027]),
    ("IRI() of text that is no IRI", &[297]),
    ("COUNT of an expression: rdflib counts errors", &[2357]),
    ("GRAPH and the like in a branch that rdflib does not come to", &[527, 577, 3110]),
    (
        "corners: raising beside `true ||`, plain strings and xsd:string, times without a zone, CONCAT of nothing, a zone of no hours",
        &[5000040, 5000041, 5000241, 5000265, 5000284, 5000342],
    ),
];

const DOCUMENTS: Listed = &[
    (
        "JSON-LD: numbers as Python has them (1.0 is a double, 1e30 is written 1e+30)",
        &[
            8, 15, 38, 62, 75, 108, 118, 145, 151, 164, 193, 209, 217, 239, 271, 293, 299, 319, 321, 322,
            345, 354, 398, 401, 406, 446, 448, 452, 459, 471, 511, 519, 546, 592, 596, 602, 642, 649, 655,
            676, 682, 685, 686,
        ],
    ),
    (
        "JSON-LD: nodes and lists under a key that means nothing, which oxjsonld keeps",
        &[
            6, 33, 54, 90, 101, 125, 129, 133, 149, 152, 189, 190, 191, 215, 231, 236, 249, 261, 314, 351,
            356, 383, 409, 425, 463, 488, 492, 506, 556, 583, 589, 657, 687, 690,
        ],
    ),
    ("JSON-LD: other corners", &[290, 378, 379]),
    ("turtle: what is an error", &[333, 559, 648]),
];

const QUERIES_MIN: usize = 3000;
const DOCUMENTS_MIN: usize = 500;

/// A line of a frozen file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Query {
        seed: u32,
        graph: String,
        query: String,
        parse: bool,
        rows: Option<usize>,
        #[serde(default)]
        values: BTreeSet<String>,
        raised: Option<String>,
    },
    Document {
        seed: u32,
        format: String,
        document: String,
        parse: bool,
        #[serde(default)]
        triples: BTreeSet<String>,
    },
    Graph {
        graph: String,
        turtle: String,
    },
}

fn lines(path: PathBuf) -> impl Iterator<Item = Line> {
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    BufReader::new(zstd::Decoder::new(file).unwrap()).lines().map(|line| {
        let line = line.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    })
}

fn frozen(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/differential").join(name)
}

/// What a query comes to.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    NoQuery,
    /// Given up with an error, which a judge takes for an empty result.
    Raised,
    Found {
        rows: usize,
        values: BTreeSet<String>,
    },
}

fn text(value: Value) -> String {
    match value {
        Value::Iri(iri) => format!("<{iri}>"),
        Value::Literal { lexical, .. } => lexical,
        Value::Blank(_) => "_:b".to_owned(),
    }
}

fn said(query: &str, graph: &(QueryGraph, PrefixTable)) -> Said {
    let Ok(prepared) = prepare(query, &graph.1, Dialect::Rdflib) else { return Said::NoQuery };
    let limits = QueryLimits { deadline: Some(Duration::from_secs(20)), rows_max: 1_000_000 };
    let executed = std::panic::catch_unwind(|| prepared.execute(&graph.0, &limits));
    match executed.unwrap_or_else(|_| Err(ExecutionError::Evaluation("the evaluator panicked".to_owned()))) {
        Ok(solutions) => Said::Found {
            rows: solutions.rows.len(),
            values: solutions.rows.into_iter().flatten().flatten().map(text).collect(),
        },
        Err(ExecutionError::TimedOut) => panic!("no query of the set takes seconds: {query}"),
        Err(_) => Said::Raised,
    }
}

#[test]
fn invented_queries_find_what_rdflib_finds() {
    let by_hand = std::env::var_os("KGFLEET_DIFFERENTIAL").map(PathBuf::from);
    let mut graphs = BTreeMap::new();
    let (mut all, mut scores, mut details) = (0, BTreeMap::new(), 0);
    for line in lines(by_hand.clone().unwrap_or_else(|| frozen("queries.jsonl.zst"))) {
        match line {
            Line::Graph { graph, turtle } => {
                let parsed = Graph::parse(&turtle, RdfFormat::Turtle, None).unwrap();
                let table = PrefixTable::layered(&[&PrefixTable::rdflib_defaults(), parsed.prefixes()]);
                graphs.insert(graph, (QueryGraph::from_graph(&parsed), table));
            }
            Line::Query { seed, graph, query, parse, rows, values, raised } => {
                all += 1;
                let theirs = match (parse, raised) {
                    (false, _) => Said::NoQuery,
                    (true, Some(_)) => Said::Raised,
                    (true, None) => Said::Found { rows: rows.unwrap_or_default(), values },
                };
                let ours = said(&query, &graphs[&graph]);
                if ours == theirs {
                    continue;
                }
                // What decides scores: whether it parses, and the values.
                let values = |said: &Said| match said {
                    Said::NoQuery => None,
                    Said::Raised => Some(BTreeSet::new()),
                    Said::Found { values, .. } => Some(values.clone()),
                };
                if values(&ours) == values(&theirs) {
                    details += 1;
                } else {
                    let report = format!(
                        "seed {seed}, graph {graph}\n{query}\n  rdflib: {theirs:?}\n  ours:   {ours:?}\n"
                    );
                    scores.insert(seed, report);
                }
            }
            Line::Document { .. } => panic!("a document among the queries"),
        }
    }
    println!("{all} queries: {} differ in what is scored, {details} more in details", scores.len());
    if by_hand.is_some() {
        scores.values().for_each(|report| println!("{report}"));
        return;
    }
    assert!(all >= QUERIES_MIN, "{all} queries are frozen");
    demand(&scores, QUERIES);
}

/// What differs is what is listed.
fn demand(found: &BTreeMap<u32, String>, listed: Listed) {
    let listed: BTreeSet<u32> = listed.iter().flat_map(|(_, seeds)| seeds.iter().copied()).collect();
    for (seed, report) in found {
        if !listed.contains(seed) {
            println!("{report}");
        }
    }
    assert_eq!(
        found.keys().copied().collect::<BTreeSet<_>>(),
        listed,
        "the seeds that differ are those listed"
    );
}

fn lines_of(graph: &Graph) -> BTreeSet<String> {
    let term = |term: Term| match term {
        Term::NamedNode(node) => node.to_string(),
        Term::BlankNode(_) => "_:b".to_owned(),
        Term::Literal(literal) => {
            let datatype = literal.datatype();
            let lexical = rdf::literal::rdflib_lexical(literal.value(), datatype.as_str());
            match literal.language() {
                Some(language) => format!("\"{}\"@{}", literal.value(), language.to_lowercase()),
                None => format!("\"{lexical}\"^^{}", datatype.as_str()),
            }
        }
    };
    let line = |triple: &rdf::Triple| {
        let subject = term(triple.subject.clone().into());
        format!("{subject} {} {}", triple.predicate, term(triple.object.clone()))
    };
    graph.iter().map(line).collect()
}

#[test]
fn invented_documents_hold_the_triples_that_rdflib_reads() {
    let (mut all, mut different) = (0, BTreeMap::new());
    for line in lines(frozen("documents.jsonl.zst")) {
        let Line::Document { seed, format, document, parse, triples } = line else {
            panic!("only documents are there");
        };
        all += 1;
        let name = match format.as_str() {
            "turtle" => RdfFormat::Turtle,
            "json-ld" => RdfFormat::JsonLd,
            _ => RdfFormat::NTriples,
        };
        let parsed = Graph::parse(&document, name, None);
        let ours = parsed.as_ref().ok().map(lines_of);
        let theirs = parse.then_some(triples);
        if ours != theirs {
            let only = |one: &Option<BTreeSet<String>>, other: &Option<BTreeSet<String>>| match (one, other) {
                (Some(one), Some(other)) => format!("{:?}", one.difference(other).collect::<Vec<_>>()),
                (Some(_), None) => "parses".to_owned(),
                (None, _) => "is refused".to_owned(),
            };
            let error = parsed.err().map(|error| error.message).unwrap_or_default();
            let report = format!(
                "seed {seed}, {format}\n{document}\n  rdflib: {}\n  ours:   {} {error}\n",
                only(&theirs, &ours),
                only(&ours, &theirs)
            );
            different.insert(seed, report);
        }
    }
    println!("{all} documents: {} differ", different.len());
    assert!(all >= DOCUMENTS_MIN, "{all} documents are frozen");
    demand(&different, DOCUMENTS);
}

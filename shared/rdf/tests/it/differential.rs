//! Invented queries and documents: the answers of rdflib, and of Oxigraph's own store by the standard, frozen in
//! `tests/differential`, compared with ours.
//!
//! Every difference is in the lists below, with its reason, and in docs/parity.md. To compare with another file that
//! `tests/differential/generate.py run` wrote, set `KGFLEET_DIFFERENTIAL` to it: the test then prints the differences
//! and does not fail.

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
    ("GROUP_CONCAT: the order of its parts", &[121, 132, 2401, 2466, 2507, 3307]),
    ("which row is sampled", &[298, 545, 950, 2136, 2317, 2917, 3126]),
    ("LIMIT where no order decides: which rows come first", &[101, 1117, 1185, 1918, 2111, 2261, 2339, 3398]),
    ("rdflib raises on what Python cannot do with a value", &[1826]),
    ("scopes and comparisons of IRIs as rdflib has them", &[237, 1002, 1145, 2974]),
    ("IRI() of text that is no IRI", &[297]),
    ("COUNT of an expression: rdflib counts errors", &[2357]),
    ("GRAPH and the like in a branch that rdflib does not come to", &[527, 577, 3110]),
    ("corners: raising beside `true ||`, a zone of no hours", &[5000040, 5000041]),
    ("ROUND of a whole double", &[6000330, 6001119]),
    (
        "corners: errors beside `&&`, messages as values, LANG of capitals",
        &[3879, 3945, 4145, 5000427, 5000436, 5000438],
    ),
    (
        "forms of literals that a query writes, and dates with a zone",
        &[6000277, 6000700, 6000720, 6000989, 6001261],
    ),
    (
        "paths: rdflib raises at inverse steps in a repeated `!`, repeats of repeats",
        &[
            6000062, 6000063, 6000137, 6000238, 6000264, 6000309, 6000321, 6000328, 6000494, 6000654,
            6000685, 6000721, 6000738, 6000777, 6000810, 6000846, 6000855, 6001014, 6001015, 6001058,
            6001107, 6001139, 6001142, 6001265, 6001375,
        ],
    ),
    ("which rows come first", &[3821, 3875, 3924, 3956, 4062, 6000839]),
];

/// Answers by the standard that differ from those of Oxigraph's store.
const STANDARD: Listed = &[
    ("IRI() of relative text", &[629, 2031, 2984, 5000286]),
    (
        "alternatives that find a row twice: both count",
        &[2022, 3671, 3777, 3941, 5000159, 5000161, 5000378, 6001452],
    ),
    ("numbers in another form than in the graph: other terms", &[237, 608, 5000237]),
    (
        "the engine gives up at an unknown function, which is an error of its row",
        &[1097, 1104, 1565, 2334, 3087, 3366, 3512, 3733, 3879, 3914, 3972, 5000202],
    ),
    ("the engine gives up at the order of terms", &[1998, 5000364]),
    (
        "which rows come first",
        &[
            101, 704, 1155, 1185, 1605, 1918, 2038, 2111, 2215, 2261, 2339, 2445, 2507, 2665, 3398, 3924,
            4062, 4167, 5000363, 5000365, 5000366, 6000334, 6001040,
        ],
    ),
];

const DOCUMENTS: Listed = &[("Turtle: `@preix`, which rdflib passes over", &[559])];

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
        #[serde(flatten)]
        rdflib: Answer,
        standard: Option<Answer>,
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

#[derive(Deserialize)]
struct Answer {
    parse: bool,
    rows: Option<usize>,
    #[serde(default)]
    values: BTreeSet<String>,
    raised: Option<String>,
}

impl Answer {
    fn said(self) -> Said {
        match (self.parse, self.raised) {
            (false, _) => Said::NoQuery,
            (true, Some(_)) => Said::Raised,
            (true, None) => Said::Found { rows: self.rows.unwrap_or_default(), values: self.values },
        }
    }
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

impl Said {
    /// What decides scores: whether it parses, and the values.
    fn scored(&self, form: fn(&str) -> String) -> Option<BTreeSet<String>> {
        match self {
            Self::NoQuery => None,
            Self::Raised => Some(BTreeSet::new()),
            Self::Found { values, .. } => Some(values.iter().map(|text| form(text)).collect()),
        }
    }
}

/// A number or a time in one form, because Oxigraph's store does not keep the forms of a document.
fn in_one_form(text: &str) -> String {
    if let Ok(number) = text.parse::<f64>() {
        return number.to_string();
    }
    text.parse::<oxsdatatypes::DateTime>().map_or_else(|_| text.to_owned(), |time| time.to_string())
}

fn text(value: Value) -> String {
    match value {
        Value::Iri(iri) => format!("<{iri}>"),
        Value::Literal { lexical, datatype, .. } if datatype.ends_with("#boolean") && lexical == "1" => {
            "true".to_owned()
        }
        Value::Literal { lexical, .. } => lexical,
        Value::Blank(_) => "_:b".to_owned(),
    }
}

fn said(query: &str, graph: &(QueryGraph, PrefixTable), dialect: Dialect) -> Said {
    let Ok(prepared) = prepare(query, &graph.1, dialect) else { return Said::NoQuery };
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
    compare(Dialect::Rdflib, QUERIES);
}

#[test]
fn the_own_index_finds_what_the_store_of_the_engine_finds() {
    compare(Dialect::Standard, STANDARD);
}

fn compare(dialect: Dialect, listed: Listed) {
    let by_hand = std::env::var_os("KGFLEET_DIFFERENTIAL").map(PathBuf::from);
    let mut graphs = BTreeMap::new();
    let (mut all, mut found, mut scores, mut details) = (0, 0, BTreeMap::new(), 0);
    for line in lines(by_hand.clone().unwrap_or_else(|| frozen("queries.jsonl.zst"))) {
        match line {
            Line::Graph { graph, turtle } => {
                let parsed = Graph::parse(&turtle, RdfFormat::Turtle, None).unwrap();
                let defaults = PrefixTable::rdflib_defaults();
                let table = match dialect {
                    Dialect::Standard => parsed.prefixes().clone(),
                    _ => PrefixTable::layered(&[&defaults, parsed.prefixes()]),
                };
                graphs.insert(graph, (QueryGraph::from_graph(&parsed), table));
            }
            Line::Query { seed, graph, query, rdflib, standard } => {
                let standard_mode = dialect == Dialect::Standard;
                let Some(theirs) = (if standard_mode { standard } else { Some(rdflib) }) else { continue };
                all += 1;
                let theirs = theirs.said();
                found += usize::from(matches!(theirs, Said::Found { rows, .. } if rows > 0));
                let ours = said(&query, &graphs[&graph], dialect);
                if ours == theirs || standard_mode && is_elsewhere(&graph, &query, &ours, &theirs) {
                    continue;
                }
                let form: fn(&str) -> String = if standard_mode { in_one_form } else { str::to_owned };
                if ours.scored(form) == theirs.scored(form) {
                    details += 1;
                } else {
                    let report = format!(
                        "seed {seed}, graph {graph}\n{query}\n  theirs: {theirs:?}\n  ours:   {ours:?}\n"
                    );
                    scores.insert(seed, report);
                }
            }
            Line::Document { .. } => panic!("a document among the queries"),
        }
    }
    println!(
        "{all} queries, {found} find something: {} differ in what is scored, {details} more in details",
        scores.len()
    );
    if by_hand.is_some() {
        scores.values().for_each(|report| println!("{report}"));
        return;
    }
    assert!(all >= QUERIES_MIN, "{all} queries are frozen");
    demand(&scores, listed);
}

/// Whether the difference is none of the index: the parser reads more and refuses more than Oxigraph's, and the store keeps
/// neither the forms of literals nor finds a path of no length from a term that it does not have.
fn is_elsewhere(graph: &str, query: &str, ours: &Said, theirs: &Said) -> bool {
    let has_forms = query.bytes().any(|byte| byte.is_ascii_digit())
        || ["STR(", ":open", ":none", ":lost"].iter().any(|part| query.contains(part));
    *ours == Said::NoQuery || *theirs == Said::NoQuery || graph == "shop" && has_forms
}

/// What differs is what is listed.
fn demand(found: &BTreeMap<u32, String>, listed: Listed) {
    let listed: BTreeSet<u32> = listed.iter().flat_map(|(_, seeds)| seeds.iter().copied()).collect();
    for (seed, report) in found {
        if std::env::var_os("SHOW").is_some() {
            println!("{report}");
        }
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

/// A name, or what stands as one: a literal that is a subject, or a blank node that is a predicate.
fn name(text: &str) -> String {
    match text.strip_prefix('"') {
        Some(rest) if rest.ends_with('"') => format!("{text}^^http://www.w3.org/2001/XMLSchema#string"),
        Some(_) => text.replace("^^<", "^^").trim_end_matches('>').to_owned(),
        None if text == "_:b" => text.to_owned(),
        None => format!("<{text}>"),
    }
}

fn lines_of(graph: &Graph) -> BTreeSet<String> {
    let term = |term: Term| match term {
        Term::NamedNode(node) => name(node.as_str()),
        Term::BlankNode(_) => "_:b".to_owned(),
        Term::Literal(literal) => {
            let datatype = literal.datatype();
            match literal.language() {
                Some(language) => format!("\"{}\"@{}", literal.value(), language.to_lowercase()),
                None => format!("\"{}\"^^{}", literal.value(), datatype.as_str()),
            }
        }
    };
    let line = |triple: &rdf::Triple| {
        let subject = term(triple.subject.clone().into());
        let predicate = name(triple.predicate.as_str());
        format!("{subject} {predicate} {}", term(triple.object.clone()))
    };
    graph.iter().map(line).collect()
}

#[test]
fn invented_documents_hold_the_triples_that_rdflib_reads() {
    let (mut all, mut different) = (0, BTreeMap::new());
    let by_hand = std::env::var_os("KGFLEET_DIFFERENTIAL").map(PathBuf::from);
    for line in lines(by_hand.clone().unwrap_or_else(|| frozen("documents.jsonl.zst"))) {
        let Line::Document { seed, format, document, parse, triples } = line else {
            panic!("only documents are there");
        };
        all += 1;
        let name = match format.as_str() {
            "turtle" => RdfFormat::Turtle,
            "json-ld" => RdfFormat::JsonLd,
            _ => RdfFormat::NTriples,
        };
        let parsed = Graph::parse_as_rdflib(&document, name);
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
    if by_hand.is_some() {
        different.values().for_each(|report| println!("{report}"));
        return;
    }
    assert!(all >= DOCUMENTS_MIN, "{all} documents are frozen");
    demand(&different, DOCUMENTS);
}

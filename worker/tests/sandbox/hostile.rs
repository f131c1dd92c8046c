//! Answers that models might give, or be made to give, to hurt who reads them.

use std::fmt::Write;

use tasks::Limit;

use crate::child::XML;

/// A task that runs queries on a small graph.
pub const QUERY: &str = "Text2SparqlExecEvalListOrganizational";
/// A task that runs queries on a graph of some 100 000 triples.
pub const LARGE: &str = "Text2SparqlExecEvalListBeastiary-turtle-schema";
/// Tasks that parse documents.
pub const TURTLE: &str = "RdfSyntaxFixList-turtle";
pub const JSONLD: &str = "RdfSyntaxFixList-jsonld";
pub const NT: &str = "RdfSyntaxFixList-nt";
/// A task that reads a list of names.
pub const LIST: &str = "RdfConnectionExplainStatic-turtle";

/// The tasks without the large graph.
pub const SMALL: [&str; 6] = [QUERY, TURTLE, JSONLD, NT, LIST, XML];

/// One answer and what is known about its verdict.
pub struct Hostile {
    pub name: &'static str,
    pub task: &'static str,
    pub answer: String,
    pub expected: Expected,
}

/// What must be so beyond having a verdict.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// Nothing.
    Any,
    /// It is scored 0 (a query 0.2 at most: the share of one that parses).
    Worthless,
    /// The verdict names one of these limits.
    Limit(&'static [Limit]),
    /// The verdict says that time or memory ran out; which of them depends on the speed of the machine.
    Exhausted,
}

/// A query in its fence.
pub fn query(text: &str) -> String {
    format!("```sparql\n{text}\n```")
}

fn document(label: &str, text: &str) -> String {
    format!("```{label}\n{text}\n```")
}

/// A cartesian product that is sorted before its first row: 30^6 rows over a graph of 30 triples, more than any machine
/// has time or memory for.
pub fn sorted_product() -> String {
    query(
        "SELECT * WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o . ?p ?q ?r } \
         ORDER BY ?c ?f ?i ?l ?o ?r",
    )
}

/// A text that doubles until it is 8 GiB long.
pub fn doubling() -> String {
    let mut text = String::from("SELECT ?x30 WHERE { BIND(\"abcdefgh\" AS ?x0)\n");
    for n in 0..30 {
        let _ = writeln!(text, "BIND(CONCAT(?x{n}, ?x{n}) AS ?x{})", n + 1);
    }
    query(&(text + "}"))
}

/// A query that counts for ever without needing memory.
pub fn endless() -> String {
    query(
        "SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n2 ?o . ?p ?q ?r }",
    )
}

/// Every hostile answer that stays below the size limit; `address` is a server that must never hear of them.
pub fn all(address: &str) -> Vec<Hostile> {
    let mut all = queries(address);
    all.extend(documents(address));
    all.extend(texts());
    all
}

fn queries(address: &str) -> Vec<Hostile> {
    use Expected::{Any, Limit as Named, Worthless};
    let of = |name, text: &str, expected| Hostile { name, task: QUERY, answer: query(text), expected };
    let many = |part: &str, count: usize| part.repeat(count);
    let deep =
        |open: &str, close: &str| format!("SELECT * {{ {}{} }}", many(open, 100_000), many(close, 100_000));
    let nested = Named(&[Limit::Nesting, Limit::Size]);
    let mut values = String::from("SELECT * WHERE { VALUES ?x {");
    for n in 0..100_000 {
        let _ = write!(values, " {n}");
    }
    values.push_str(" } ?a ?b ?c }");
    vec![
        Hostile {
            name: "sorted cartesian product",
            task: QUERY,
            answer: sorted_product(),
            expected: Expected::Exhausted,
        },
        Hostile { name: "doubling text", task: QUERY, answer: doubling(), expected: Expected::Exhausted },
        of("cartesian product", "SELECT * WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }", Any),
        of("100 000 braces", &deep("{", "}"), nested),
        of("100 000 parentheses", &deep("FILTER(", ")"), nested),
        of("100 000 open braces", &format!("SELECT * {}", many("{", 100_000)), nested),
        of("deep OPTIONAL", &deep("OPTIONAL { ?s ?p ?o ", "}"), nested),
        of("wide UNION", &format!("SELECT * {{ {{}} {} }}", many("UNION { ?s ?p ?o } ", 10_000)), nested),
        of(
            "long property path",
            &format!("SELECT * {{ ?s {}rdf:type ?o }}", many("rdf:type/", 10_000)),
            nested,
        ),
        of("path closure", "SELECT * { ?a (!rdf:nil|^!rdf:nil)* ?b . ?c (!rdf:nil|^!rdf:nil)* ?d }", Any),
        of("many rows of VALUES", &values, Any),
        of(
            "grouping a product",
            "SELECT ?a ?d (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } GROUP BY ?a ?d",
            Any,
        ),
        of("SERVICE", &format!("SELECT * {{ SERVICE <http://{address}/sparql> {{ ?s ?p ?o }} }}"), Worthless),
        of(
            "SERVICE SILENT",
            &format!("SELECT * {{ SERVICE SILENT <http://{address}/sparql> {{ ?s ?p ?o }} }}"),
            Worthless,
        ),
        of("FROM", &format!("SELECT * FROM <http://{address}/data.ttl> {{ ?s ?p ?o }}"), Any),
        of("LOAD", &format!("LOAD <http://{address}/data.ttl> # SELECT"), Worthless),
        of("update", "DELETE WHERE { ?s ?p ?o } # SELECT", Worthless),
        of("regex bomb", "SELECT * { ?s ?p ?o FILTER regex(str(?o), \"(a+)+(a|aa)*(.*)*$\") }", Any),
        of(
            "regex of many states",
            "SELECT * { ?s ?p ?o FILTER regex(str(?o), \"((((x{999}){999}){999}){999})\") }",
            Any,
        ),
        of("huge numbers", &format!("SELECT ({}9 * 1e999999 / 0.0 AS ?n) {{}}", many("9", 100_000)), Any),
        of("control characters", "SELECT * { ?s ?p \"\u{0}\u{1b}[2J\u{202e}\u{feff}\u{fffd}\" }", Any),
        of("byte order marks", "\u{feff}SELECT\u{feff} * { ?s ?p ?o }\u{feff}", Any),
        of("broken escapes", "SELECT * { ?s ?p \"\\uD800\\u12\\U00110000\" }", Worthless),
    ]
}

fn documents(address: &str) -> Vec<Hostile> {
    use Expected::Any;
    let of = |name, task, text: &str| Hostile { name, task, answer: document("x", text), expected: Any };
    let many = |part: &str, count: usize| part.repeat(count);
    let mut bomb = String::from("<!DOCTYPE r [<!ENTITY e0 \"lol\">");
    for level in 1..12 {
        let _ = write!(bomb, "<!ENTITY e{level} \"{}\">", many(&format!("&e{};", level - 1), 10));
    }
    bomb.push_str("]><r>&e11;</r>");
    let deep_xml = format!("{}{}", many("<a xmlns=\"http://e/\">", 20_000), many("</a>", 20_000));
    let mut tiny = String::new();
    for n in 0..1_000_000 {
        let _ = writeln!(tiny, ":s{n} :p {n}.");
    }
    let mut blank = String::new();
    for n in 0..2_000 {
        for m in 1..5 {
            let _ = writeln!(blank, "_:b{n} <http://e/p> _:b{} .", (n * 7 + m * 13) % 2_000);
        }
    }
    vec![
        of("1 000 000 triples", TURTLE, &format!("@prefix : <http://e/> .\n{tiny}")),
        of(
            "100 000 nested blank nodes",
            TURTLE,
            &format!("<a> <b> {}{} .", many("[<p> ", 100_000), many("]", 100_000)),
        ),
        of(
            "100 000 nested lists",
            TURTLE,
            &format!("<a> <b> {}{} .", many("(", 100_000), many(")", 100_000)),
        ),
        of("unclosed brackets", TURTLE, &many("[", 1_000_000)),
        of("lines without an end", TURTLE, &many("<a> <b> <c", 10_000)),
        of("tangle of blank nodes", NT, &blank),
        of("control characters", NT, "<http://e/a> <http://e/b> \"\u{0}\u{feff}\u{fffd}\" .\u{0}"),
        of("entity bomb", XML, &bomb),
        of(
            "external entity",
            XML,
            &format!("<!DOCTYPE r [<!ENTITY e SYSTEM \"http://{address}/\">]><r>&e;</r>"),
        ),
        of("file entity", XML, "<!DOCTYPE r [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><r>&e;</r>"),
        of("deep elements", XML, &deep_xml),
        of(
            "remote context",
            JSONLD,
            &format!("{{\"@context\": \"http://{address}/context.jsonld\", \"a\": 1}}"),
        ),
        of(
            "import",
            JSONLD,
            &format!("{{\"@context\": {{\"@import\": \"http://{address}/c\"}}, \"@id\": \"urn:a\"}}"),
        ),
        of(
            "deep arrays",
            JSONLD,
            &format!("{{\"http://e/p\": {}{}}}", many("[", 100_000), many("]", 100_000)),
        ),
        of("deep objects", JSONLD, &format!("{}1{}", many("{\"http://e/p\":", 100_000), many("}", 100_000))),
        of(
            "duplicate keys",
            JSONLD,
            "{\"@id\": \"urn:a\", \"@id\": \"urn:b\", \"@type\": 1, \"@type\": [[]]}",
        ),
        of(
            "numbers without bounds",
            JSONLD,
            &format!("{{\"http://e/p\": [1e999, -1e-999, {}, NaN]}}", many("9", 50_000)),
        ),
        of("lone surrogates", JSONLD, "{\"http://e/p\": \"\\ud800\\udfff\\u0000\"}"),
        of("cyclic context", JSONLD, "{\"@context\": {\"a\": \"b:a\", \"b\": \"a:b\"}, \"a:x\": 1}"),
    ]
}

fn texts() -> Vec<Hostile> {
    let of = |name, task, answer| Hostile { name, task, answer, expected: Expected::Any };
    let prose = |repetitions| "All work and no play makes a dull graph. ".repeat(repetitions);
    let ten_megabytes = || prose(250_000);
    vec![
        of("10 MB of prose for a query", QUERY, ten_megabytes()),
        of("10 MB of prose for a list", LIST, ten_megabytes()),
        of("1 MB of query", QUERY, query(&format!("SELECT * {{ ?s ?p \"{}\" }}", prose(25_000)))),
        of("1 MB of document", TURTLE, document("turtle", &format!("<a> <b> \"{}\" .", prose(25_000)))),
        of("500 000 fences", QUERY, "```\nSELECT\n".repeat(500_000)),
        of("nothing", QUERY, String::new()),
        of("commas", LIST, ",".repeat(1_000_000)),
        of("formulas and escapes", LIST, "=cmd|'/c calc'!A0, \u{1b}[2J, \u{202e}, \u{0}".to_owned()),
    ]
}

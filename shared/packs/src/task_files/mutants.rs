//! Mutants of reference answers: the same answer with one part less, such as a constraint, a filter, a triple or an item. A mutant
//! that still has full score shows what a task does not measure.

use std::ops::Range;

use rdf::query::tokens::{TokenKind, Tokens};
use rdf::{Graph, PrefixTable, RdfFormat, Term, Triple};
use serde_json::Value;
use tasks::families::declared::spec::AnswerReading;

/// Most mutants of one answer.
const MUTANTS_MAX: usize = 40;

const SH: &str = "http://www.w3.org/ns/shacl#";

/// What shapes say beside their constraints.
const NO_CONSTRAINTS: [&str; 16] = [
    "path",
    "property",
    "targetClass",
    "targetNode",
    "targetSubjectsOf",
    "targetObjectsOf",
    "name",
    "description",
    "message",
    "severity",
    "order",
    "group",
    "flags",
    "ignoredProperties",
    "defaultValue",
    "deactivated",
];

/// Parts of queries that can be left out, with what follows them in brackets.
const CLAUSES: [&str; 4] = ["FILTER", "OPTIONAL", "MINUS", "HAVING"];

/// An answer with one part less.
#[derive(Debug, PartialEq)]
pub(crate) struct Mutant {
    /// The part that is missing.
    pub(crate) without: String,
    pub(crate) body: String,
}

/// The mutants of a body that is read in this way. Those that cannot be read are left to the judge, who gives them 0.
pub(crate) fn of(body: &str, reading: AnswerReading, prefixes: &PrefixTable) -> Vec<Mutant> {
    let mut mutants = match reading {
        AnswerReading::Turtle | AnswerReading::Nt => of_graph(body, prefixes, &|_| true),
        AnswerReading::Shapes => of_graph(body, prefixes, &is_constraint),
        AnswerReading::List => of_lines(body),
        AnswerReading::Json => of_json(body),
        AnswerReading::Sparql => of_query(body),
        AnswerReading::Text | AnswerReading::Number | AnswerReading::JsonLd | AnswerReading::Xml => {
            Vec::new()
        }
    };
    mutants.truncate(MUTANTS_MAX);
    mutants
}

fn is_constraint(triple: &Triple) -> bool {
    triple.predicate.as_str().strip_prefix(SH).is_some_and(|local| !NO_CONSTRAINTS.contains(&local))
}

fn of_graph(body: &str, prefixes: &PrefixTable, counts: &dyn Fn(&Triple) -> bool) -> Vec<Mutant> {
    let Ok(graph) = Graph::parse_turtle_with(body, prefixes) else { return Vec::new() };
    let table = PrefixTable::layered(&[prefixes, graph.prefixes()]);
    // Every document in N-Triples is one in Turtle, with a line for each triple.
    let document = graph.serialize(RdfFormat::NTriples, &PrefixTable::new());
    let lines: Vec<&str> = document.lines().collect();
    let mutant = |(number, triple): (usize, &Triple)| Mutant {
        without: told(triple, &graph, &table),
        body: all_but(&lines, number),
    };
    graph.iter().enumerate().filter(|(_, triple)| counts(triple)).map(mutant).collect()
}

fn all_but(lines: &[&str], number: usize) -> String {
    [&lines[..number], &lines[number + 1..]].concat().join("\n")
}

/// A triple as people write it. A property shape is told by its path.
fn told(triple: &Triple, graph: &Graph, prefixes: &PrefixTable) -> String {
    let path = |node: &Term| {
        let of_node = |other: &&Triple| {
            Term::from(other.subject.clone()) == *node && other.predicate.as_str() == format!("{SH}path")
        };
        graph.iter().find(of_node).map(|found| found.object.clone())
    };
    let short = |term: &Term| match term {
        Term::NamedNode(node) => prefixes.compact(node.as_str()).unwrap_or_else(|| term.to_string()),
        Term::BlankNode(_) => "[]".to_owned(),
        Term::Literal(literal) => literal.value().to_owned(),
    };
    let subject = Term::from(triple.subject.clone());
    let subject = path(&subject).unwrap_or(subject);
    format!("{} {} {}", short(&subject), short(&triple.predicate.clone().into()), short(&triple.object))
}

fn of_lines(body: &str) -> Vec<Mutant> {
    let lines: Vec<&str> = body.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.len() < 2 {
        return Vec::new();
    }
    let mutant =
        |number: usize| Mutant { without: lines[number].trim().to_owned(), body: all_but(&lines, number) };
    (0..lines.len()).map(mutant).collect()
}

fn of_json(body: &str) -> Vec<Mutant> {
    let Ok(Value::Array(items)) = serde_json::from_str(body) else { return Vec::new() };
    if items.len() < 2 {
        return Vec::new();
    }
    let mutant = |number: usize| {
        let mut rest = items.clone();
        let missing = rest.remove(number);
        Mutant { without: missing.to_string(), body: Value::Array(rest).to_string() }
    };
    (0..items.len()).map(mutant).collect()
}

/// Queries without one of their clauses, or without one of their variables.
fn of_query(body: &str) -> Vec<Mutant> {
    let without = |range: Range<usize>| Mutant {
        without: body[range.clone()].split_whitespace().collect::<Vec<_>>().join(" "),
        body: format!("{} {}", &body[..range.start], &body[range.end..]),
    };
    let tokens = Tokens::of(body);
    let mut mutants: Vec<Mutant> = clauses(&tokens).into_iter().map(without).collect();
    let columns = columns(&tokens);
    if columns.len() > 1 {
        mutants.extend(columns.into_iter().map(without));
    }
    mutants
}

/// Where clauses stand: from their word to the end of the first brackets behind it.
fn clauses(tokens: &Tokens<'_>) -> Vec<Range<usize>> {
    let partners = tokens.partners();
    let end_of_brackets = |from: usize| {
        let mut behind = from + 1..tokens.len();
        let open = behind.find(|at| tokens.is_punctuation(*at, "(") || tokens.is_punctuation(*at, "{"))?;
        partners[open].map(|close| tokens.list[close].range.end)
    };
    let clause = |at: usize| {
        let is_clause = CLAUSES.iter().any(|word| tokens.is_word(at, word));
        is_clause.then(|| Some(tokens.list[at].range.start..end_of_brackets(at)?)).flatten()
    };
    (0..tokens.len()).filter_map(clause).collect()
}

/// Where the variables of a SELECT stand, each with its expression.
fn columns(tokens: &Tokens<'_>) -> Vec<Range<usize>> {
    let partners = tokens.partners();
    let Some(select) = (0..tokens.len()).find(|at| tokens.is_word(*at, "SELECT")) else { return Vec::new() };
    let mut found = Vec::new();
    let mut at = select + 1 + usize::from(tokens.is_word(select + 1, "DISTINCT"));
    loop {
        let last = match tokens.kind(at) {
            Some(TokenKind::Variable) => at,
            _ => match partners.get(at).copied().flatten().filter(|_| tokens.is_punctuation(at, "(")) {
                Some(close) => close,
                None => return found,
            },
        };
        found.push(tokens.list[at].range.start..tokens.list[last].range.end);
        at = last + 1;
    }
}

#[cfg(test)]
mod tests;

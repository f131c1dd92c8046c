//! SPARQL by the standard, read by Oxigraph's parser.

use super::dialect::Dialect;
use super::iris::declares_prefix;
use super::rdflib::{self, Refusal};
use super::tokens::{TokenKind, Tokens};
use crate::graph::BASE_IRI;
use crate::prefixes::PrefixTable;
use spargebra::algebra::{GraphPattern, PropertyPathExpression};
use spargebra::{Query, SparqlParser};
use std::collections::HashSet;

/// Reads a query of any kind. Undeclared prefixes are looked up in the table; relative IRIs have a base.
pub(super) fn read(tokens: &Tokens<'_>, table: &PrefixTable) -> Result<Query, Refusal> {
    let names = Names::of(tokens, table);
    let respelled = respelled(tokens);
    let mut query = names.parse(&respelled, &[]).map_err(|message| {
        if let Some(prefix) = names.unknown.first()
            && names.parse(&respelled, &names.unknown).is_ok()
        {
            return Refusal::UnknownPrefix((*prefix).to_owned());
        }
        // The position must refer to the caller's text.
        let message = names.parse(tokens.source, &[]).err().unwrap_or(message);
        Refusal::Grammar(byte_of(tokens.source, &message))
    })?;
    if let Query::Select { pattern, .. } = &mut query {
        // Oxigraph's parser accepts aggregates in the patterns of a grouped query.
        let misplaced = rdflib::read(tokens.source, table, Dialect::Rdflib)
            .ok()
            .and_then(|reading| reading.misplaced_aggregate);
        if let Some(byte) = misplaced {
            return Err(Refusal::Grammar(byte));
        }
        drop_order(pattern);
        keep_duplicates(pattern);
    }
    Ok(query)
}

/// Rewrites what the standard allows and the parser does not: blanks before the brackets of three functions, and `TRUE`
/// and `FALSE` in any case. The text keeps its length.
fn respelled(tokens: &Tokens<'_>) -> String {
    let mut text = tokens.source.to_owned();
    for index in 0..tokens.len() {
        let range = tokens.list[index].range.clone();
        if ["COALESCE", "CONCAT", "BNODE"].iter().any(|name| tokens.is_word(index, name))
            && tokens.is_punctuation(index + 1, "(")
        {
            let bracket = tokens.list[index + 1].range.clone();
            let between = &tokens.source[range.end..bracket.start];
            // After a comment, the bracket would become part of it.
            if between.chars().all(char::is_whitespace) {
                text.replace_range(range.end..bracket.end, &format!("({between}"));
            }
        } else if tokens.is_word(index, "true") || tokens.is_word(index, "false") {
            text[range].make_ascii_lowercase();
        }
    }
    text
}

/// The prefixes that matter for one query.
struct Names<'a> {
    /// Used, not declared, and bound by the table.
    bound: Vec<(&'a str, &'a str)>,
    /// Used, not declared, and bound nowhere.
    unknown: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn of(tokens: &Tokens<'a>, table: &'a PrefixTable) -> Self {
        let mut declared = HashSet::new();
        let mut used = HashSet::new();
        let mut names = Self { bound: Vec::new(), unknown: Vec::new() };
        for index in 0..tokens.len() {
            if tokens.kind(index) != Some(TokenKind::Prefixed) {
                continue;
            }
            let prefix = tokens.text(index).split(':').next().unwrap_or_default();
            if index > 0 && declares_prefix(tokens, index - 1) {
                declared.insert(prefix);
            } else if used.insert(prefix) && !declared.contains(prefix) {
                match table.get(prefix) {
                    Some(namespace) => names.bound.push((prefix, namespace)),
                    None => names.unknown.push(prefix),
                }
            }
        }
        names
    }

    /// Parses with Oxigraph; the prefixes in `more` are bound to a placeholder.
    fn parse(&self, text: &str, more: &[&str]) -> Result<Query, String> {
        let mut parser = SparqlParser::new().with_base_iri(BASE_IRI).map_err(|error| error.to_string())?;
        let more = more.iter().map(|prefix| (*prefix, BASE_IRI));
        for (prefix, namespace) in self.bound.iter().copied().chain(more) {
            // If a namespace is not an IRI, its names are unknown to Oxigraph.
            parser = parser.clone().with_prefix(prefix, namespace).unwrap_or(parser);
        }
        parser.parse_query(text).map_err(|error| error.to_string())
    }
}

/// The position in Oxigraph's `error at LINE:COLUMN: expected ...`, in bytes.
fn byte_of(source: &str, message: &str) -> usize {
    let place = message.strip_prefix("error at ").and_then(|rest| {
        let (line, rest) = rest.split_once(':')?;
        let (column, _) = rest.split_once(':')?;
        Some((line.parse::<usize>().ok()?, column.parse::<usize>().ok()?))
    });
    let Some((line, column)) = place else { return 0 };
    let line_start: usize = source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut characters = source[line_start..].char_indices();
    characters.nth(column.saturating_sub(1)).map_or(source.len(), |(at, _)| line_start + at)
}

/// Without LIMIT and OFFSET the order of a whole result changes nothing, and sorting takes time.
fn drop_order(pattern: &mut GraphPattern) {
    match pattern {
        GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Project { inner, .. } => drop_order(inner),
        GraphPattern::OrderBy { inner, .. } => *pattern = std::mem::take(&mut **inner),
        _ => {}
    }
}

/// Turns alternative paths into unions: by the standard, a solution of both counts twice, and the evaluator counts it once.
fn keep_duplicates(pattern: &mut GraphPattern) {
    match pattern {
        GraphPattern::Path { subject, path: PropertyPathExpression::Alternative(left, right), object } => {
            let one = |path: &PropertyPathExpression| {
                let mut side = GraphPattern::Path {
                    subject: subject.clone(),
                    path: path.clone(),
                    object: object.clone(),
                };
                keep_duplicates(&mut side);
                Box::new(side)
            };
            *pattern = GraphPattern::Union { left: one(left), right: one(right) };
        }
        other => rdflib::inner_patterns(other).into_iter().for_each(keep_duplicates),
    }
}

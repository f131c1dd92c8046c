//! Rewrites that let SPARQL written for rdflib or for the Wikidata endpoint run on Oxigraph.
//!
//! Oxigraph checks more while parsing than rdflib does, so some rewrites must work on text that the parser refuses.
//! They are therefore made of tokens: rare, simple, and tried only after the plain text failed.

use super::iris::inside;
use super::outline::{Item, Outline};
use super::parse::Dialect;
use super::tokens::{TokenKind, Tokens};
use crate::graph::BASE_IRI;
use spargebra::SparqlParser;
use std::collections::HashSet;
use std::ops::Range;

/// A rewritten query and the variables that were renamed in it, as (fresh, original) names.
#[derive(Debug, Clone, Default)]
pub(super) struct Rewritten {
    pub(super) text: String,
    pub(super) renamed: Vec<(String, String)>,
}

/// Replacements in a text, which must not overlap.
#[derive(Debug, Default)]
struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    fn replace(&mut self, tokens: &Tokens<'_>, index: usize, text: impl Into<String>) {
        self.0.push((tokens.list[index].range.clone(), text.into()));
    }

    fn before(&mut self, tokens: &Tokens<'_>, index: usize, text: &str) {
        let at = tokens.list.get(index).map_or(tokens.source.len(), |token| token.range.start);
        self.0.push((at..at, text.to_owned()));
    }

    /// The edited text, or `None` if there is nothing to edit.
    fn apply(mut self, source: &str) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_by_key(|(range, _)| range.start);
        let mut text = String::with_capacity(source.len() + 64);
        let mut at = 0;
        for (range, replacement) in self.0 {
            text.push_str(source.get(at..range.start).unwrap_or_default());
            text.push_str(&replacement);
            at = at.max(range.end);
        }
        text.push_str(&source[at..]);
        Some(text)
    }
}

/// What every query needs before the first attempt: GROUP_CONCAT takes any term as text, and in the Wikidata dialect
/// the string functions take any literal and the label service is left out. `None` if nothing applies.
pub(super) fn lenient(tokens: &Tokens<'_>, dialect: Dialect) -> Option<String> {
    const STRING_FUNCTIONS: [&str; 4] = ["CONTAINS", "STRSTARTS", "STRENDS", "REGEX"];
    let concerned = |index: usize| {
        tokens.is_word(index, "GROUP_CONCAT")
            || dialect == Dialect::Wikidata
                && (tokens.is_word(index, "SERVICE")
                    || STRING_FUNCTIONS.iter().any(|name| tokens.is_word(index, name)))
    };
    if !(0..tokens.len()).any(concerned) {
        return None;
    }
    let partners = tokens.partners();
    let mut edits = Edits::default();
    let mut index = 0;
    while index < tokens.len() {
        if concerned(index) && tokens.is_word(index, "SERVICE") {
            if let Some(close) = label_service_end(tokens, &partners, index) {
                // An empty group stays, so that the dots around the service keep their place.
                let range = tokens.list[index].range.start..tokens.list[close].range.end;
                edits.0.push((range, "{}".to_owned()));
                index = close;
            }
        } else if concerned(index) && tokens.is_punctuation(index + 1, "(") {
            let first = index + 2 + usize::from(tokens.is_word(index + 2, "DISTINCT"));
            let close = partners[index + 1];
            if let Some(end) = close.and_then(|close| argument_end(tokens, &partners, first, close)) {
                edits.before(tokens, first, "STR(");
                edits.before(tokens, end, ")");
            }
        }
        index += 1;
    }
    edits.apply(tokens.source)
}

/// The token after the first argument of a call whose bracket closes at `close`.
fn argument_end(
    tokens: &Tokens<'_>,
    partners: &[Option<usize>],
    first: usize,
    close: usize,
) -> Option<usize> {
    let mut at = first;
    while at < close && !tokens.is_punctuation(at, ",") && !tokens.is_punctuation(at, ";") {
        at = partners[at].filter(|partner| *partner > at).unwrap_or(at) + 1;
    }
    (at > first && at <= close).then_some(at)
}

/// The closing brace of `SERVICE wikibase:label { ... }`.
fn label_service_end(tokens: &Tokens<'_>, partners: &[Option<usize>], service: usize) -> Option<usize> {
    let name = service + 1 + usize::from(tokens.is_word(service + 1, "SILENT"));
    let is_label = match tokens.kind(name)? {
        TokenKind::Prefixed => tokens.text(name) == "wikibase:label",
        TokenKind::Iri => inside(tokens.text(name)) == "http://wikiba.se/ontology#label",
        _ => false,
    };
    if is_label && tokens.is_punctuation(name + 1, "{") { partners[name + 1] } else { None }
}

/// Spellings that rdflib takes and Oxigraph does not: `True` and `False`, and IRIs with characters that an IRI cannot
/// have. The latter occur in no graph, so any other unused IRI stands for them.
pub(super) fn spelling(tokens: &Tokens<'_>) -> Option<String> {
    let mut edits = Edits::default();
    for index in 0..tokens.len() {
        let text = tokens.text(index);
        match tokens.kind(index) {
            Some(TokenKind::Word) if ["True", "TRUE", "False", "FALSE"].contains(&text) => {
                edits.replace(tokens, index, text.to_ascii_lowercase());
            }
            Some(TokenKind::Iri) if !resolves(inside(text)) => {
                edits.replace(tokens, index, format!("<{BASE_IRI}invalid/{index}>"));
            }
            _ => {}
        }
    }
    edits.apply(tokens.source)
}

/// Whether Oxigraph takes an IRI reference under our base. Asked of its parser, which owns the rules.
fn resolves(reference: &str) -> bool {
    SparqlParser::new()
        .with_base_iri(BASE_IRI)
        .is_ok_and(|parser| parser.parse_query(&format!("ASK{{<{reference}> ?p ?o}}")).is_ok())
}

/// Renames the target of the first BIND that binds a variable used before it in its group: there, to the end of the
/// group, and in the projection and modifiers of the SELECT. rdflib overwrites the earlier value instead.
pub(super) fn rename_bind(tokens: &Tokens<'_>, serial: usize) -> Option<Rewritten> {
    let outline = Outline::of(tokens);
    for bind in (0..tokens.len()).filter(|index| tokens.is_word(*index, "BIND")) {
        let Some(close) = outline.partners.get(bind + 1).copied().flatten() else { continue };
        let (Some(target), Some(open)) = (outline.target_before(close), outline.group_around(bind)) else {
            continue;
        };
        let name = outline.variable(target);
        let used_before = (open..bind)
            .any(|index| outline.variable(index) == name && !outline.stands_in(index, &["FILTER"]));
        if !used_before {
            continue;
        }
        let group_end = outline.partners[open].unwrap_or(tokens.len());
        let fresh = fresh_name(tokens, name, serial);
        let mut scope: Vec<usize> = (target..group_end).collect();
        let around = outline.selects.iter().rev().find(|select| select.group.contains(&open));
        if let Some(select) = around {
            scope.extend(select.projection.clone());
            if select.group.start == open {
                scope.extend(select.modifiers.clone());
            }
        }
        let mut edits = Edits::default();
        for index in scope.into_iter().filter(|index| outline.variable(*index) == name) {
            edits.replace(tokens, index, format!("?{fresh}"));
        }
        let renamed = vec![(fresh, name.to_owned())];
        return edits.apply(tokens.source).map(|text| Rewritten { text, renamed });
    }
    None
}

/// Repairs projections that Oxigraph refuses and rdflib evaluates: repeated variables, expressions that override a
/// variable, and variables that are neither grouped nor aggregated, of which rdflib takes a sample.
pub(super) fn repair_projections(tokens: &Tokens<'_>, serial: usize) -> Option<Rewritten> {
    let outline = Outline::of(tokens);
    let mut edits = Edits::default();
    let mut renamed = Vec::new();
    for select in &outline.selects {
        let Some(items) = outline.items(select) else { continue };
        let aggregated = outline.is_aggregated(select);
        let grouped = outline.grouped(select);
        let used: HashSet<&str> = select.group.clone().map(|index| outline.variable(index)).collect();
        let mut seen = HashSet::new();
        for item in items {
            let (target, renames) = match &item {
                Item::Star(_) => continue,
                Item::Variable(at) => {
                    let name = outline.variable(*at);
                    if seen.contains(name) {
                        edits.replace(tokens, *at, "");
                        continue;
                    }
                    (*at, aggregated && !grouped.contains(&name))
                }
                Item::Expression { expression, target } => {
                    if aggregated {
                        for at in outline.variables_outside_aggregates(expression.clone()) {
                            if !grouped.contains(&outline.variable(at)) {
                                edits.replace(tokens, at, format!("SAMPLE({})", tokens.text(at)));
                            }
                        }
                    }
                    let name = outline.variable(*target);
                    let overrides = if aggregated { grouped.contains(&name) } else { used.contains(name) };
                    (*target, overrides || seen.contains(name))
                }
            };
            let name = outline.variable(target);
            seen.insert(name);
            if !renames {
                continue;
            }
            let fresh = fresh_name(tokens, name, serial + renamed.len());
            edits.replace(
                tokens,
                target,
                match item {
                    Item::Variable(_) => format!("(SAMPLE(?{name}) AS ?{fresh})"),
                    _ => format!("?{fresh}"),
                },
            );
            for at in outline
                .modifier(select, "ORDER")
                .into_iter()
                .flat_map(|range| outline.variables_outside_aggregates(range))
            {
                if outline.variable(at) == name {
                    edits.replace(tokens, at, format!("?{fresh}"));
                }
            }
            renamed.push((fresh, name.to_owned()));
        }
    }
    edits.apply(tokens.source).map(|text| Rewritten { text, renamed })
}

/// Whether an aggregate stands where rdflib fails at run time: in FILTER or BIND, or in ORDER BY of a SELECT without
/// grouping.
pub(super) fn has_misplaced_aggregate(tokens: &Tokens<'_>) -> bool {
    let outline = Outline::of(tokens);
    let in_where = (0..tokens.len()).any(|index| {
        outline.aggregate_call(index).is_some() && outline.stands_in(index, &["FILTER", "BIND"])
    });
    in_where
        || outline.selects.iter().any(|select| {
            !outline.is_aggregated(select)
                && outline.modifier(select, "ORDER").is_some_and(|range| outline.has_aggregate(range))
        })
}

/// The same query without anything that only means something odd: if this parses, the original is grammatical.
/// Every projected term becomes `(COALESCE(term) AS ?fresh)`, every BIND target and blank node label is fresh.
pub(super) fn skeleton(tokens: &Tokens<'_>) -> String {
    let outline = Outline::of(tokens);
    let mut edits = Edits::default();
    for select in &outline.selects {
        for item in outline.items(select).into_iter().flatten() {
            match item {
                Item::Star(at) => {
                    edits.replace(tokens, at, format!("(1 AS ?{})", fresh_name(tokens, "k", at)));
                }
                Item::Variable(at) => {
                    let fresh = fresh_name(tokens, "k", at);
                    edits.replace(tokens, at, format!("(COALESCE({}) AS ?{fresh})", tokens.text(at)));
                }
                Item::Expression { expression, target } => {
                    edits.before(tokens, expression.start, "COALESCE(");
                    edits.before(tokens, expression.end, ")");
                    edits.replace(tokens, target, format!("?{}", fresh_name(tokens, "k", target)));
                }
            }
        }
    }
    for index in 0..tokens.len() {
        if tokens.is_word(index, "BIND") {
            let close = outline.partners.get(index + 1).copied().flatten();
            if let Some(target) = close.and_then(|close| outline.target_before(close)) {
                edits.replace(tokens, target, format!("?{}", fresh_name(tokens, "k", target)));
            }
        } else if tokens.kind(index) == Some(TokenKind::Blank) {
            edits.replace(tokens, index, format!("_:{}", fresh_name(tokens, "k", index)));
        }
    }
    edits.apply(tokens.source).unwrap_or_else(|| tokens.source.to_owned())
}

/// A variable name that the query does not use.
fn fresh_name(tokens: &Tokens<'_>, name: &str, serial: usize) -> String {
    let mut fresh = format!("{name}__{serial}");
    while tokens.source.contains(&fresh) {
        fresh.push('_');
    }
    fresh
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wikidata(text: &str) -> String {
        lenient(&Tokens::of(text), Dialect::Wikidata).unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn string_functions_take_any_literal_on_wikidata_only() {
        let text = "{ FILTER(contains(YEAR(?d), '19') && regex(?l, \"x\", 'i')) }";
        assert_eq!(wikidata(text), "{ FILTER(contains(STR(YEAR(?d)), '19') && regex(STR(?l), \"x\", 'i')) }");
        assert_eq!(lenient(&Tokens::of(text), Dialect::Plain), None);
    }

    #[test]
    fn group_concat_takes_any_term() {
        let text = "SELECT (GROUP_CONCAT(DISTINCT ?x ; separator=', ') AS ?l) {}";
        let expected = "SELECT (GROUP_CONCAT(DISTINCT STR(?x ); separator=', ') AS ?l) {}";
        assert_eq!(lenient(&Tokens::of(text), Dialect::Plain).as_deref(), Some(expected));
    }

    #[test]
    fn the_label_service_becomes_an_empty_group() {
        let text =
            "{ ?a ?b ?c . SERVICE wikibase:label { bd:serviceParam wikibase:language 'en' . } ?d ?e ?f }";
        assert_eq!(wikidata(text), "{ ?a ?b ?c . {} ?d ?e ?f }");
        let other = "{ SERVICE wikibase:around { } }";
        assert_eq!(wikidata(other), other);
    }

    #[test]
    fn a_bind_over_a_used_variable_is_renamed_from_there_on() {
        let text = "SELECT ?y { ?x :p ?y . BIND(STR(?y) AS ?y) FILTER(?y != '') } ORDER BY ?y";
        let rewritten = rename_bind(&Tokens::of(text), 0).unwrap();
        assert_eq!(
            rewritten.text,
            "SELECT ?y__0 { ?x :p ?y . BIND(STR(?y) AS ?y__0) FILTER(?y__0 != '') } ORDER BY ?y__0"
        );
        assert_eq!(rewritten.renamed, [("y__0".to_owned(), "y".to_owned())]);
        assert!(rename_bind(&Tokens::of("SELECT * { BIND(1 AS ?y) ?x :p ?y }"), 0).is_none());
    }

    #[test]
    fn ungrouped_variables_are_sampled() {
        let text = "SELECT ?g ?v ?v (COUNT(?x) + ?w AS ?n) { ?g :p ?v } GROUP BY ?g ORDER BY ?v";
        assert_eq!(
            repair_projections(&Tokens::of(text), 0).unwrap().text,
            "SELECT ?g (SAMPLE(?v) AS ?v__0)  (COUNT(?x) + SAMPLE(?w) AS ?n) { ?g :p ?v } GROUP BY ?g ORDER BY ?v__0"
        );
    }

    #[test]
    fn misplaced_aggregates_are_seen() {
        let misplaced = |text| has_misplaced_aggregate(&Tokens::of(text));
        assert!(misplaced("SELECT ?x { ?x :p ?y FILTER(COUNT(?y) > 1) }"));
        assert!(misplaced("SELECT ?x { ?x :p ?y } ORDER BY DESC(COUNT(?y))"));
        assert!(!misplaced("SELECT ?x { ?x :p ?y } GROUP BY ?x HAVING(COUNT(?y) > 1) ORDER BY COUNT(?y)"));
        assert!(!misplaced("SELECT ?x { FILTER EXISTS { SELECT (COUNT(?y) AS ?n) { ?x :p ?y } } }"));
    }
}

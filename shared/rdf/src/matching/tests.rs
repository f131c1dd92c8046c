//! Comparisons of graphs with blank nodes.

use proptest::prelude::*;

use super::*;
use crate::format::RdfFormat;

fn graph(text: &str) -> Graph {
    Graph::parse(&format!("@prefix : <http://e/> . {text}"), RdfFormat::Turtle, None).unwrap()
}

fn common(found: &str, expected: &str) -> GraphMatch {
    compare(&graph(found), &graph(expected), &MatchRule::default())
}

#[test]
fn labels_order_and_lexical_forms_make_no_difference() {
    let one = ":P :weight [ :value 2.5 ; :unit :kg ] ; :name 'p' .";
    let other = "_:w :unit :kg ; :value 2.50 . :P :name 'p' ; :weight _:w .";
    let same = common(other, one);
    assert_eq!(same, GraphMatch { common: 4, found: 4, expected: 4, is_exact: true });
    let exact =
        compare(&graph(other), &graph(one), &MatchRule { exact_literals: true, ..MatchRule::default() });
    assert_eq!((exact.common, exact.is_exact), (3, true));
}

#[test]
fn a_part_that_is_right_counts_and_what_is_left_out_does_not() {
    let expected = ":P :weight [ :value 2.5 ; :unit :kg ] ; :sender [ :name 'R' ] .";
    let without = common(":P :weight [ :value 2.5 ] ; :sender [ :name 'R' ; :age 3 ] .", expected);
    assert_eq!((without.common, without.found, without.expected), (4, 5, 5));
    let ignored = ["http://e/age".to_owned(), "http://e/unit".to_owned()];
    let rule = MatchRule { ignored: &ignored, ..MatchRule::default() };
    let found = compare(
        &graph(":P :weight [ :value 2.5 ] ; :sender [ :name 'R' ; :age 3 ] ."),
        &graph(expected),
        &rule,
    );
    assert_eq!((found.common, found.found, found.expected), (4, 4, 4));
}

#[test]
fn blank_nodes_may_all_be_equal() {
    let rule = MatchRule { blank_equal: true, ..MatchRule::default() };
    let found = compare(&graph("[] :p [ :q 1 ] ."), &graph("[] :p [] . [] :q 1 ."), &rule);
    assert_eq!((found.common, found.found, found.expected), (2, 2, 2));
}

#[test]
fn nodes_that_are_alike_are_told_apart_by_their_neighbours() {
    // Two rings of three against one of six: each node looks the same from nearby.
    let ring = |names: &[usize]| -> String {
        let next = names.iter().cycle().skip(1);
        names.iter().zip(next).map(|(a, b)| format!("_:n{a} :p _:n{b} . ")).collect()
    };
    let rings = format!("{}{}", ring(&[0, 1, 2]), ring(&[3, 4, 5]));
    let six = ring(&[0, 1, 2, 3, 4, 5]);
    let compared = common(&six, &rings);
    assert_eq!((compared.common, compared.is_exact), (4, true));
    assert_eq!(common(&rings, &rings).common, 6);
    assert_eq!(common(&six, &ring(&[3, 0, 5, 1, 4, 2])).common, 6);
}

#[test]
fn hostile_graphs_end_with_a_lower_bound() {
    // A complete graph of alike nodes, of whose triples one is missing.
    let complete = |skip: usize| -> String {
        let pairs = (0..60).flat_map(|a| (0..60).map(move |b| (a, b))).filter(|(a, b)| a != b);
        pairs.skip(skip).map(|(a, b)| format!("_:n{a} :p _:n{b} . ")).collect()
    };
    let compared = common(&complete(1), &complete(0));
    assert!(compared.common > 3_000 && compared.common <= 3_539, "{compared:?}");
    let many: String = (0..50_000).map(|n| format!("[] :p {n} . ")).collect();
    assert_eq!(common(&many, &many).common, 50_000);
    let others: String = (0..50_000).map(|n| format!("[] :p {} . ", n + 1)).collect();
    assert!(common(&others, &many).common >= 49_000);
    let alike = "[] :p 1 . ".repeat(50_000);
    assert_eq!(common(&alike, &alike).common, 50_000);
}

/// The best of all mappings.
fn best(found: &MatchedSide, expected: &MatchedSide) -> usize {
    fn go(node: usize, found: &MatchedSide, expected: &MatchedSide, mapping: &mut NodeMapping) -> usize {
        if node == found.nodes() {
            let mapped = found.triples.iter().filter(|(subject, predicate, object)| {
                let line = mapping.place(*subject).zip(mapping.place(*object));
                line.is_some_and(|(subject, object)| expected.known.contains(&(subject, *predicate, object)))
            });
            return mapped.count();
        }
        let mut most = go(node + 1, found, expected, mapping);
        for image in 0..expected.nodes() {
            if !mapping.taken.contains_key(&image) {
                mapping.set(node, Some(image));
                most = most.max(go(node + 1, found, expected, mapping));
                mapping.set(node, None);
            }
        }
        most
    }
    go(0, found, expected, &mut NodeMapping::default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn up_to_six_blank_nodes_are_mapped_as_well_as_can_be(
        left in prop::collection::vec((0u8..5, 0u8..2, 0u8..7), 0..9),
        right in prop::collection::vec((0u8..5, 0u8..2, 0u8..7), 0..9),
    ) {
        let text = |lines: &[(u8, u8, u8)]| -> String {
            let place = |n: u8| if n < 5 { format!("_:b{n}") } else { format!(":n{n}") };
            lines.iter().map(|(s, p, o)| format!("{} :p{p} {} . ", place(*s), place(*o))).collect()
        };
        let (left, right) = (graph(&text(&left)), graph(&text(&right)));
        let rule = MatchRule::default();
        let ranks = ranks([&left, &right], &rule);
        let (found, expected) = (MatchedSide::read(&left, &ranks, &rule), MatchedSide::read(&right, &ranks, &rule));
        let matched = compare(&left, &right, &rule);
        prop_assert!(matched.is_exact);
        prop_assert_eq!(matched.common, best(&found, &expected));
        prop_assert_eq!(compare(&left, &left, &rule).common, left.len());
    }
}

//! The check `list`: items are compared as sets, or in their order.

use std::collections::BTreeSet;

use rdf::PrefixTable;

use super::scores::{CheckScores, share_scores, shares};
use crate::compared::lines_of;
use crate::families::declared::spec::ItemKind;
use crate::families::declared::words;

/// Most pairs of items that are compared to find the longest common order. Longer lists are compared place by place.
const PAIRS_MAX: usize = 4_000_000;

/// How the items of a list are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListRule {
    pub(super) items: ItemKind,
    pub(super) ordered: bool,
    /// Whether some right items are worth something.
    pub(super) partial: bool,
    pub(super) empty_ok: bool,
}

/// Compares the items of an answer with the expected ones. An item that is none of its kind is a wrong one.
pub(super) fn compare(
    found: &[String],
    expected: &[String],
    rule: ListRule,
    prefixes: &PrefixTable,
) -> CheckScores {
    let items = |texts: &[String]| -> Vec<String> {
        let item =
            |text: &String| words::item(text, rule.items, prefixes).unwrap_or_else(|| format!("\0{text}"));
        texts.iter().map(item).collect()
    };
    let (found, expected) = (items(found), items(expected));
    let mut scores = if rule.ordered {
        let common = common_in_order(&found, &expected);
        CheckScores::of_shares(shares(common, found.len(), expected.len(), rule.empty_ok))
    } else {
        let (found, expected): (BTreeSet<_>, BTreeSet<_>) =
            (found.iter().collect(), expected.iter().collect());
        share_scores(&found, &expected, rule.empty_ok)
    };
    if !rule.partial && scores.main < 1.0 {
        scores.main = 0.0;
    }
    scores.info("found", found.len());
    scores.empty = found.is_empty() && !expected.is_empty();
    scores
}

/// Items as they are compared, one a line: in alphabetical order and once each, unless their order counts.
pub(super) fn shown(texts: &[String], rule: ListRule, prefixes: &PrefixTable) -> Option<String> {
    let item = |text: &String| words::item(text, rule.items, prefixes).unwrap_or_else(|| text.clone());
    let mut items: Vec<String> = texts.iter().map(item).collect();
    if !rule.ordered {
        items.sort();
        items.dedup();
    }
    lines_of(items)
}

/// The length of the longest list whose items stand in both lists in this order.
fn common_in_order(left: &[String], right: &[String]) -> usize {
    if left.len().saturating_mul(right.len()) > PAIRS_MAX {
        return left.iter().zip(right).filter(|(left, right)| left == right).count();
    }
    let mut lengths = vec![0_usize; right.len() + 1];
    for item in left {
        let mut before = 0;
        for (at, other) in right.iter().enumerate() {
            let above = lengths[at + 1];
            lengths[at + 1] = if item == other { before + 1 } else { above.max(lengths[at]) };
            before = above;
        }
    }
    lengths.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(found: &[&str], expected: &[&str], ordered: bool, partial: bool) -> CheckScores {
        let rule = ListRule { items: ItemKind::Text, ordered, partial, empty_ok: false };
        let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        compare(&list(found), &list(expected), rule, &PrefixTable::new())
    }

    #[test]
    fn lists_are_sets_unless_their_order_counts() {
        let two_thirds = 2.0 * (2.0 / 3.0) * (2.0 / 3.0) / (4.0 / 3.0);
        assert_eq!(scores(&["B", "a", "a"], &["a", "b"], false, true).main, 1.0);
        assert_eq!(scores(&["b", "a", "c"], &["a", "b", "c"], true, true).main, two_thirds);
        assert_eq!(scores(&["a", "b", "c"], &["a", "b", "c"], true, true).main, 1.0);
        let partly = scores(&["a", "x"], &["a", "b"], false, false);
        assert_eq!(
            (partly.main, partly.parts),
            (0.0, vec![("precision".into(), 0.5), ("recall".into(), 0.5)])
        );
        assert!(scores(&[], &["a"], false, true).empty);
    }

    #[test]
    fn what_is_no_item_of_its_kind_is_wrong_and_takes_bounded_time() {
        let rule = ListRule { items: ItemKind::Number, ordered: false, partial: true, empty_ok: false };
        let found = ["1".to_owned(), "one".to_owned()];
        assert_eq!(
            compare(&found, &["1".to_owned()], rule, &PrefixTable::new()).parts[0],
            ("precision".into(), 0.5)
        );
        let many: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
        let rule = ListRule { items: ItemKind::Text, ordered: true, partial: true, empty_ok: false };
        assert_eq!(compare(&many, &many, rule, &PrefixTable::new()).main, 1.0);
    }
}

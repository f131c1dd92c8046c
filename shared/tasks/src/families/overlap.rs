//! The overlap of two sets: precision, recall and F1 of the multi-shot classes.

use std::collections::BTreeSet;

/// Precision, recall and their harmonic mean, each 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Overlap {
    /// Share of the answer that is right; 1 for an empty answer.
    pub(crate) precision: f64,
    /// Share of the reference that was found; 1 for an empty reference.
    pub(crate) recall: f64,
    /// Harmonic mean; 0 if both are 0.
    pub(crate) f1: f64,
}

impl Overlap {
    /// Compares an answer with its reference.
    pub(crate) fn of<T: Ord>(answer: &BTreeSet<T>, reference: &BTreeSet<T>) -> Self {
        let common = answer.intersection(reference).count();
        let precision = share(common, answer.len());
        let recall = share(common, reference.len());
        let sum = precision + recall;
        let f1 = if sum == 0.0 { 0.0 } else { 2.0 * precision * recall / sum };
        Self { precision, recall, f1 }
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn overlap(answer: &[&str], reference: &[&str]) -> (f64, f64, f64) {
        let set = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<BTreeSet<_>>();
        let Overlap { precision, recall, f1 } = Overlap::of(&set(answer), &set(reference));
        (precision, recall, f1)
    }

    #[test]
    fn an_empty_answer_is_precise_and_finds_nothing() {
        assert_eq!(overlap(&[], &["a"]), (1.0, 0.0, 0.0));
        assert_eq!(overlap(&["a"], &[]), (0.0, 1.0, 0.0));
        assert_eq!(overlap(&[], &[]), (1.0, 1.0, 1.0));
    }

    #[test]
    fn shares_keep_the_rounding_of_the_published_scores() {
        assert_eq!(overlap(&["a", "b"], &["a"]), (0.5, 1.0, 0.666_666_666_666_666_6));
        let seven = ["a", "1", "2", "3", "4", "5", "6"];
        assert_eq!(overlap(&seven, &["a", "7", "8", "9"]), (1.0 / 7.0, 0.25, 0.181_818_181_818_181_82));
        assert_eq!(
            overlap(&["a", "b", "1", "2", "3"], &["a", "b", "4", "5", "6"]),
            (0.4, 0.4, 0.400_000_000_000_000_1),
            "rounding may leave F1 a hair above its parts"
        );
    }

    proptest! {
        #[test]
        fn f1_lies_between_its_parts_and_equal_sets_are_perfect(
            answer in proptest::collection::btree_set(0..20_u8, 0..20),
            reference in proptest::collection::btree_set(0..20_u8, 0..20),
        ) {
            let Overlap { precision, recall, f1 } = Overlap::of(&answer, &reference);
            prop_assert!(f1 <= precision.max(recall) + 1e-12);
            prop_assert!((0.0..=1.0).contains(&precision) && (0.0..=1.0).contains(&recall));
            prop_assert_eq!(Overlap::of(&answer, &answer).f1, 1.0);
        }
    }
}

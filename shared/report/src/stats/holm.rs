//! Holm's correction for many comparisons.

/// P values corrected so that the probability of any false finding among them stays below the level, in their order.
/// Values that are not numbers stay what they are and do not count.
pub fn holm(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).filter(|&at| !ps[at].is_nan()).collect();
    order.sort_by(|&a, &b| ps[a].total_cmp(&ps[b]));
    let mut corrected = ps.to_vec();
    let mut highest: f64 = 0.0;
    for (rank, &at) in order.iter().enumerate() {
        highest = highest.max((ps[at] * (order.len() - rank) as f64).min(1.0));
        corrected[at] = highest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_textbooks() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(corrected.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{corrected:?}");
        assert!(holm(&[f64::NAN, 0.02])[1] == 0.02);
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn corrected_values_are_higher_and_in_the_same_order(ps in prop::collection::vec(0.0..1.0_f64, 0..20)) {
            let corrected = holm(&ps);
            for (a, p) in corrected.iter().zip(&ps) {
                prop_assert!(a >= p && *a <= 1.0);
                for (b, q) in corrected.iter().zip(&ps) {
                    prop_assert!(p > q || a <= b);
                }
            }
        }
    }
}

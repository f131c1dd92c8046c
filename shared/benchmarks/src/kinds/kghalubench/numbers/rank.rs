//! Rank correlations: how far two numbers of the same things rise together, whatever their scales. By them difficulties are
//! compared with points.

/// Spearman's rho: Pearson's correlation of the ranks, equal values sharing their mean rank. `None` for fewer than two
/// pairs, or if one side is constant.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let first = ranks(pairs.iter().map(|pair| pair.0));
    let second = ranks(pairs.iter().map(|pair| pair.1));
    // Mean ranks of any list: both sides have the same mean.
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let sum = |f: &dyn Fn(usize) -> f64| (0..pairs.len()).map(f).sum::<f64>();
    let covariance = sum(&|i| (first[i] - mean) * (second[i] - mean));
    let spread = sum(&|i| (first[i] - mean).powi(2)) * sum(&|i| (second[i] - mean).powi(2));
    (spread > 0.0).then(|| covariance / spread.sqrt())
}

/// Kendall's tau-b, in n log n (Knight, *A Computer Method for Calculating Kendall's Tau with Ungrouped Data*, 1966).
/// `None` for fewer than two pairs, or if one side is constant.
pub fn kendall(pairs: &[(f64, f64)]) -> Option<f64> {
    let mut sorted = pairs.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let ties_first = tied_pairs(sorted.iter().map(|pair| pair.0));
    let ties_both = tied_pairs(sorted.iter().copied());
    let mut second: Vec<f64> = sorted.iter().map(|pair| pair.1).collect();
    let discordant = inversions(&mut second);
    let ties_second = tied_pairs(second.iter().copied());
    let n = pairs.len() as u64;
    let all = n * n.saturating_sub(1) / 2;
    let spread = ((all - ties_first) as f64) * ((all - ties_second) as f64);
    let concordant_less_discordant =
        (all + ties_both) as f64 - ties_first as f64 - ties_second as f64 - 2.0 * discordant as f64;
    (spread > 0.0).then(|| concordant_less_discordant / spread.sqrt())
}

fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let mean = before as f64 + (equal.len() as f64 + 1.0) / 2.0;
        for index in equal {
            ranks[*index] = mean;
        }
        before += equal.len();
    }
    ranks
}

/// Pairs of equal neighbours in a sorted list.
fn tied_pairs<T: PartialEq>(sorted: impl Iterator<Item = T>) -> u64 {
    let mut pairs = 0;
    let mut run = 0;
    let mut last = None;
    for value in sorted {
        run = if last.as_ref() == Some(&value) { run + 1 } else { 0 };
        pairs += run;
        last = Some(value);
    }
    pairs
}

/// Sorts the list; returns the number of pairs that were in the wrong order.
fn inversions(values: &mut [f64]) -> u64 {
    if values.len() < 2 {
        return 0;
    }
    let half = values.len() / 2;
    let mut count = inversions(&mut values[..half]) + inversions(&mut values[half..]);
    let mut merged = Vec::with_capacity(values.len());
    let (mut left, mut right) = (0, half);
    while left < half && right < values.len() {
        if values[right] < values[left] {
            count += (half - left) as u64;
            merged.push(values[right]);
            right += 1;
        } else {
            merged.push(values[left]);
            left += 1;
        }
    }
    merged.extend_from_slice(&values[left..half]);
    merged.extend_from_slice(&values[right..]);
    values.copy_from_slice(&merged);
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn order_and_its_opposite() {
        let up: Vec<_> = (0..9).map(|i| (f64::from(i), f64::from(i * i))).collect();
        let down: Vec<_> = (0..9).map(|i| (f64::from(i), f64::from(-i))).collect();
        assert_eq!((spearman(&up), kendall(&up)), (Some(1.0), Some(1.0)));
        assert_eq!((spearman(&down), kendall(&down)), (Some(-1.0), Some(-1.0)));
    }

    #[test]
    fn nothing_where_there_is_no_order() {
        for pairs in [vec![], vec![(1.0, 2.0)], vec![(1.0, 2.0), (1.0, 3.0)]] {
            assert_eq!((spearman(&pairs), kendall(&pairs)), (None, None), "{pairs:?}");
        }
    }

    proptest! {
        #[test]
        fn counting_all_pairs_agrees(values in proptest::collection::vec((0_u8..6, 0_u8..6), 2..60)) {
            let pairs: Vec<(f64, f64)> = values.iter().map(|(a, b)| (f64::from(*a), f64::from(*b))).collect();
            let (mut sum, mut first, mut second) = (0_i64, 0_i64, 0_i64);
            for (index, a) in values.iter().enumerate() {
                for b in &values[..index] {
                    let (x, y) = (i64::from(a.0) - i64::from(b.0), i64::from(a.1) - i64::from(b.1));
                    sum += x.signum() * y.signum();
                    first += x.signum().abs();
                    second += y.signum().abs();
                }
            }
            let expected = (first > 0 && second > 0)
                .then(|| sum as f64 / ((first as f64) * (second as f64)).sqrt());
            match (kendall(&pairs), expected) {
                (Some(a), Some(b)) => prop_assert!((a - b).abs() < 1e-12),
                (a, b) => prop_assert_eq!(a, b),
            }
        }
    }
}

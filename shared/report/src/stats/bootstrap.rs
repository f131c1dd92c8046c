//! Bootstrap intervals of a mean, by drawing whole clusters.
//!
//! Dialogues about one case resemble each other, so they are no independent values. Drawing cases with replacement, each
//! with all of its values, keeps that: the interval grows with the differences between cases. The questions of a benchmark
//! are then a sample of the questions that could have been asked.

use domain::seed::SplitMix64;

use super::describe::quantile;

/// Draws per interval.
pub const DRAWS: usize = 2_000;

/// Share of the draws inside of an interval.
pub const CONFIDENCE: f64 = 0.95;

/// An interval around a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// Whether single values were drawn, because all of them belong to one cluster.
    pub of_values: bool,
}

/// The percentile interval of the mean of values given with their clusters. Equal inputs and seeds give equal intervals, in
/// whatever order the values come. `None` of fewer than two values.
pub fn clustered_mean<C: Ord + Copy>(values: &[(C, f64)], seed: u64) -> Option<Interval> {
    if values.len() < 2 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let clusters: Vec<&[(C, f64)]> = sorted.chunk_by(|a, b| a.0 == b.0).collect();
    let of_values = clusters.len() == 1;
    // Of a cluster only sum and number matter.
    let parts: Vec<(f64, f64)> = if of_values {
        sorted.iter().map(|(_, value)| (*value, 1.0)).collect()
    } else {
        clusters
            .iter()
            .map(|cluster| (cluster.iter().map(|(_, value)| value).sum(), cluster.len() as f64))
            .collect()
    };
    let mut random = SplitMix64::new(seed);
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let (mut sum, mut count) = (0.0, 0.0);
            for _ in 0..parts.len() {
                let (part, number) = parts[place(&mut random, parts.len())];
                sum += part;
                count += number;
            }
            sum / count
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Some(Interval { low: quantile(&means, tail), high: quantile(&means, 1.0 - tail), of_values })
}

fn place(random: &mut SplitMix64, parts: usize) -> usize {
    ((random.unit() * parts as f64) as usize).min(parts - 1)
}

/// A seed from names, so that an interval does not depend on what else is in a report.
pub fn seed_of(names: &[&str]) -> u64 {
    names
        .iter()
        .flat_map(|name| name.bytes().chain([0]))
        .fold(0x6b67_666c, |state, byte| SplitMix64::mix(state ^ u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cases_that_differ_widen_the_interval() {
        // Five cases, each always right or always wrong, against the same values spread over the cases.
        let within: Vec<(u32, f64)> = (0..20).map(|n| (n % 5, if n % 5 < 3 { 1.0 } else { 0.0 })).collect();
        let across: Vec<(u32, f64)> =
            (0..20).map(|n| (n / 4 % 5, if n % 5 < 3 { 1.0 } else { 0.0 })).collect();
        let width = |values: &[(u32, f64)]| {
            let interval = clustered_mean(values, 7).unwrap();
            interval.high - interval.low
        };
        assert!(width(&within) > 2.0 * width(&across), "{} {}", width(&within), width(&across));
    }

    #[test]
    fn of_one_case_single_values_are_drawn() {
        let one: Vec<(u32, f64)> = (0..20).map(|n| (0, f64::from(n % 2))).collect();
        let interval = clustered_mean(&one, 1).unwrap();
        assert!(interval.of_values && interval.low < 0.5 && interval.high > 0.5);
        assert_eq!(clustered_mean(&one[..1], 1), None);
        let equal = clustered_mean(&[(0, 0.5), (1, 0.5)], 1).unwrap();
        assert_eq!((equal.low, equal.high), (0.5, 0.5));
    }

    proptest! {
        #[test]
        fn the_interval_is_inside_the_values_and_depends_on_no_order(
            values in prop::collection::vec((0..6_u32, 0.0..1.0_f64), 2..40), seed: u64,
        ) {
            let interval = clustered_mean(&values, seed).unwrap();
            let (low, high) = values.iter().fold((1.0_f64, 0.0_f64), |(l, h), (_, v)| (l.min(*v), h.max(*v)));
            prop_assert!(interval.low >= low - 1e-12 && interval.high <= high + 1e-12 && interval.low <= interval.high);
            let mut turned = values.clone();
            turned.reverse();
            prop_assert_eq!(clustered_mean(&turned, seed), Some(interval));
        }
    }
}

//! A sample in a few numbers, tests of two samples, how large their difference is, and Holm's correction for many comparisons.
//! P values are two-sided.

use special::{Beta, Error};

/// Mean, spread and quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleSummary {
    pub n: usize,
    pub mean: f64,
    /// Standard deviation of the sample, with n − 1 below; `None` of one value.
    pub sd: Option<f64>,
    /// Standard deviation with n below, as numpy's `std` gives it by default.
    pub population_sd: f64,
    pub min: f64,
    /// Quartiles interpolate linearly between values, as numpy's default does.
    pub q1: f64,
    pub median: f64,
    pub q3: f64,
    pub max: f64,
}

impl SampleSummary {
    /// `None` of no values. Values that are not finite are left out.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let (n, mean) = (sorted.len(), mean(&sorted)?);
        let sum_of_squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            n,
            mean,
            sd: (n > 1).then(|| (sum_of_squares / (n - 1) as f64).sqrt()),
            population_sd: (sum_of_squares / n as f64).sqrt(),
            min: sorted[0],
            q1: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            q3: quantile(&sorted, 0.75),
            max: sorted[n - 1],
        })
    }
}

/// The mean in the order of the values; `None` of no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The variance with n − 1 below; `None` of fewer than two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let sum: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| sum / (values.len() - 1) as f64)
}

/// A quantile of sorted values, between neighbours in proportion.
///
/// # Panics
/// Without values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// Cohen's d: the difference of the means in units of the pooled standard deviation. `None` where there is none: fewer than
/// two values on a side, or no spread.
pub fn cohens_d(a: &[f64], b: &[f64]) -> Option<f64> {
    let (na, nb) = (a.len() as f64, b.len() as f64);
    let pooled = ((na - 1.0) * variance(a)? + (nb - 1.0) * variance(b)?) / (na + nb - 2.0);
    in_deviations(mean(a)? - mean(b)?, pooled)
}

/// Hedges' g: Cohen's d without its bias in small samples.
pub fn hedges_g(a: &[f64], b: &[f64]) -> Option<f64> {
    let freedom = (a.len() + b.len()) as f64 - 2.0;
    Some(cohens_d(a, b)? * (1.0 - 3.0 / (4.0 * freedom - 1.0)))
}

/// Cliff's delta: how much more often a value of `a` exceeds one of `b` than the reverse, from −1 to 1. `None` without
/// values on both sides.
pub fn cliffs_delta(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let mut sorted = b.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ahead: f64 = a
        .iter()
        .map(|value| {
            let below = sorted.partition_point(|other| other < value);
            let up_to = sorted.partition_point(|other| other <= value);
            below as f64 - (sorted.len() - up_to) as f64
        })
        .sum();
    Some(ahead / (a.len() * b.len()) as f64)
}

/// Deviation of values between 0 and 1 below which it is rounding: equal values differ in their last digits.
const ROUNDING: f64 = 1e-9;

/// A difference in units of the deviation of this variance. `None` where there is no spread.
pub fn in_deviations(difference: f64, variance: f64) -> Option<f64> {
    let deviation = variance.sqrt();
    (deviation > ROUNDING).then(|| difference / deviation)
}

/// P values corrected so that the probability of any false finding among them stays below the level, in their order. What
/// has none does not count.
pub fn holm(ps: impl IntoIterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let mut corrected: Vec<Option<f64>> = ps.into_iter().collect();
    let mut order: Vec<(usize, f64)> =
        corrected.iter().enumerate().filter_map(|(at, p)| Some((at, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut highest: f64 = 0.0;
    for (rank, &(at, p)) in order.iter().enumerate() {
        highest = highest.max((p * (order.len() - rank) as f64).min(1.0));
        corrected[at] = Some(highest);
    }
    corrected
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TTest {
    /// Positive where the first sample has the higher mean. Infinite where both samples are constants that differ.
    pub t: f64,
    /// Degrees of freedom.
    pub df: f64,
    pub p: f64,
    /// Difference of the means, first less second.
    pub difference: f64,
    /// 95 % interval of the difference.
    pub interval: (f64, f64),
}

/// Two independent samples, and how they differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoSamples {
    /// Values on both sides.
    pub n: (usize, usize),
    pub means: (Option<f64>, Option<f64>),
    /// `None` where there is nothing to test: too few values, or equal constants.
    pub test: Option<TTest>,
    /// Hedges' g, positive where the first has the higher mean.
    pub g: Option<f64>,
    /// Cliff's delta, positive where the first exceeds the second more often.
    pub delta: Option<f64>,
}

impl TwoSamples {
    pub fn of(a: &[f64], b: &[f64]) -> Self {
        Self {
            n: (a.len(), b.len()),
            means: (mean(a), mean(b)),
            test: welch(a, b),
            g: hedges_g(a, b),
            delta: cliffs_delta(a, b),
        }
    }
}

/// Welch's test of two independent samples, which does not take their variances to be equal. `None` where it does not
/// exist: fewer than two values on a side, or two equal constants.
pub fn welch(a: &[f64], b: &[f64]) -> Option<TTest> {
    let (va, vb) = (variance(a)? / a.len() as f64, variance(b)? / b.len() as f64);
    let squared = va + vb;
    let freedom = squared.powi(2) / (va.powi(2) / (a.len() - 1) as f64 + vb.powi(2) / (b.len() - 1) as f64);
    t_test(mean(a)? - mean(b)?, squared.sqrt(), freedom)
}

/// Student's test of a difference with this standard error; `None` where neither is more than rounding.
fn t_test(difference: f64, error: f64, df: f64) -> Option<TTest> {
    // Means of equal values differ in their last digits; their differences are no evidence.
    const ROUNDING: f64 = 1e-12;
    if error <= ROUNDING {
        let certain = TTest {
            t: f64::INFINITY.copysign(difference),
            df,
            p: 0.0,
            difference,
            interval: (difference, difference),
        };
        return (difference.abs() > ROUNDING).then_some(TTest { df: f64::NAN, ..certain });
    }
    let t = difference / error;
    let reach = t_critical(df) * error;
    Some(TTest { t, df, p: t_p(t, df), difference, interval: (difference - reach, difference + reach) })
}

/// The two-sided p value of Student's t.
pub(super) fn t_p(t: f64, df: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    let (half, x) = (df / 2.0, df / (df + t * t));
    x.inc_beta(half, 0.5, half.ln_beta(0.5)).clamp(0.0, 1.0)
}

/// The t beyond which 5 % lie, by halving: p falls with t. At most 1 000, which few degrees of freedom exceed.
pub(super) fn t_critical(df: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e3);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if t_p(middle, df) > 0.05 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Wilcoxon's signed-rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wilcoxon {
    /// Differences that are not zero.
    pub n: usize,
    /// The smaller of the two sums of ranks.
    pub w: f64,
    /// By the normal approximation, corrected for ties, without correction for continuity.
    pub p: f64,
}

/// The signed-rank test of differences; zeros are left out. `None` where nothing is left.
pub fn wilcoxon(differences: &[f64]) -> Option<Wilcoxon> {
    let mut nonzero: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0 && d.is_finite()).collect();
    nonzero.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let n = nonzero.len();
    if n == 0 {
        return None;
    }
    let (mut plus, mut minus, mut ties, mut before) = (0.0, 0.0, 0.0, 0.0);
    for equal in nonzero.chunk_by(|a, b| a.abs() == b.abs()) {
        let size = equal.len() as f64;
        let rank = before + (size + 1.0) / 2.0;
        let positive = equal.iter().filter(|d| **d > 0.0).count() as f64;
        plus += rank * positive;
        minus += rank * (size - positive);
        ties += size.powi(3) - size;
        before += size;
    }
    let count = n as f64;
    let expected = count * (count + 1.0) / 4.0;
    let error = ((count * (count + 1.0) * (2.0 * count + 1.0) - ties / 2.0) / 24.0).sqrt();
    let w = f64::min(plus, minus);
    let z = (w - expected) / error;
    Some(Wilcoxon { n, w, p: (z.abs() / std::f64::consts::SQRT_2).compl_error().clamp(0.0, 1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_value_has_no_deviation_and_none_has_nothing() {
        assert_eq!(SampleSummary::of([]), None);
        assert_eq!(SampleSummary::of([f64::NAN]), None);
        let one = SampleSummary::of([0.5]).unwrap();
        assert_eq!((one.n, one.mean, one.sd, one.median), (1, 0.5, None, 0.5));
        let equal = SampleSummary::of([0.25; 7]).unwrap();
        assert_eq!((equal.sd, equal.population_sd, equal.q1, equal.q3), (Some(0.0), 0.0, 0.25, 0.25));
    }

    proptest! {
        #[test]
        fn quartiles_are_in_order_and_the_mean_is_between_the_ends(values in prop::collection::vec(-1e6..1e6_f64, 1..50)) {
            let all = SampleSummary::of(values.iter().copied()).unwrap();
            prop_assert!(all.min <= all.q1 && all.q1 <= all.median && all.median <= all.q3 && all.q3 <= all.max);
            prop_assert!(all.min - 1e-6 <= all.mean && all.mean <= all.max + 1e-6);
            prop_assert!(all.sd.is_none_or(|sd| sd >= all.population_sd));
        }
    }

    #[test]
    fn effects_know_their_ends() {
        assert_eq!(cliffs_delta(&[1.0, 1.0], &[0.0, 0.5]), Some(1.0));
        assert_eq!(cliffs_delta(&[0.0, 1.0], &[0.0, 1.0]), Some(0.0));
        assert_eq!(cliffs_delta(&[], &[1.0]), None);
        assert_eq!(cohens_d(&[1.0, 1.0], &[1.0, 1.0]), None);
        assert_eq!(cohens_d(&[1.0], &[1.0, 2.0]), None);
        // Equal differences, whose variance is rounding.
        let equal: Vec<f64> = (1..20).map(|n| f64::from(n) * 0.1 + 0.7 - f64::from(n) * 0.1).collect();
        assert_ne!(variance(&equal), Some(0.0));
        assert_eq!(in_deviations(0.7, variance(&equal).unwrap()), None);
        assert_eq!(cohens_d(&equal, &[0.1; 5]), None);
    }

    proptest! {
        #[test]
        fn corrected_values_are_higher_and_in_the_same_order(ps in prop::collection::vec(0.0..1.0_f64, 0..20)) {
            let corrected: Vec<f64> = holm(ps.iter().copied().map(Some)).into_iter().flatten().collect();
            for (a, p) in corrected.iter().zip(&ps) {
                prop_assert!(a >= p && *a <= 1.0);
                for (b, q) in corrected.iter().zip(&ps) {
                    prop_assert!(p > q || a <= b);
                }
            }
        }
    }

    #[test]
    fn constants_have_a_sure_answer_or_none() {
        assert_eq!(welch(&[0.5; 5], &[0.5; 5]), None);
        assert_eq!(welch(&[0.1 + 0.2; 5], &[0.3; 5]), None, "rounding is no difference");
        let sure = welch(&[1.0; 5], &[0.5; 5]).unwrap();
        assert_eq!((sure.p, sure.difference, sure.t), (0.0, 0.5, f64::INFINITY));
        assert_eq!(welch(&[1.0], &[0.5; 5]), None);
        assert_eq!(wilcoxon(&[0.0, 0.0]), None);
    }

    proptest! {
        #[test]
        fn exchanging_the_samples_turns_the_sign_and_nothing_else(
            a in prop::collection::vec(0.0..1.0_f64, 2..30), b in prop::collection::vec(0.0..1.0_f64, 2..30),
        ) {
            if let (Some(one), Some(other)) = (welch(&a, &b), welch(&b, &a)) {
                prop_assert!((one.p - other.p).abs() < 1e-12 && (one.t + other.t).abs() < 1e-9);
                prop_assert!((0.0..=1.0).contains(&one.p));
                prop_assert_eq!(one.p < 0.05, one.interval.0 > 0.0 || one.interval.1 < 0.0);
            }
        }
    }
}

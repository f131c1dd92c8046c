//! Tests of two samples. P values are two-sided.

use special::{Beta, Error};

use super::describe::{mean, variance};

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
    use proptest::prelude::*;

    use super::*;

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

//! How large a difference is, whatever the number of values.

use super::describe::{mean, variance};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}

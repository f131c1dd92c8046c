//! A sample in a few numbers.

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
}

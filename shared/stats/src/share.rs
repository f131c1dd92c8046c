//! What a sample says of a share: Jeffreys' posterior, a beta distribution with half a success and half a failure added to those
//! that were seen. Its intervals cover as they say also near 0 and 1 (Brown, Cai and DasGupta, "Interval Estimation for a Binomial
//! Proportion", 2001, section 4.3).

use statrs::distribution::{Beta, ContinuousCDF};

/// So many values of the share, equally likely, in rising order, for `yes` of `all` that were seen. Without any, those that are
/// expected of a share of which nothing is known.
pub fn likely_shares(yes: u32, all: u32, values: usize) -> Vec<f64> {
    let (yes, no) = (f64::from(yes), f64::from(all.saturating_sub(yes)));
    // Positive parameters are always a distribution.
    let Ok(posterior) = Beta::new(yes + 0.5, no + 0.5) else { return vec![0.5; values] };
    (0..values).map(|place| posterior.inverse_cdf((place as f64 + 0.5) / values as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_in_the_middle_of_what_is_likely() {
        let shares = likely_shares(20, 80, 200);
        assert!(shares.is_sorted() && shares.len() == 200);
        let mean = shares.iter().sum::<f64>() / 200.0;
        assert!((mean - 20.5 / 81.0).abs() < 1e-3, "{mean}");
        // The interval of Jeffreys for 20 of 80, as R's binom.bayes has it: 0.165 to 0.352.
        assert!((shares[5] - 0.165).abs() < 0.003 && (shares[194] - 0.352).abs() < 0.003);
    }

    #[test]
    fn a_share_that_nobody_saw_may_be_anything() {
        let unknown = likely_shares(0, 0, 100);
        assert!(unknown[2] < 0.01 && unknown[97] > 0.99);
        let never = likely_shares(0, 40, 100);
        assert!(never[0] < 1e-4 && never[97] > 0.03 && never[97] < 0.08, "{never:?}");
    }
}

//! The group of models that lead: the best one, and those after it until the first that differs from it.
//!
//! As in the journal article: models in the order of their mean, each compared with the best by a two-sided test at 0.05,
//! until the first difference. Models with fewer or more scattered values are harder to tell from the best, so a model further
//! down may not differ either; it is outside of the group all the same. Beside it stands what is left after Holm's correction
//! for all comparisons with the best.

use super::ALPHA;
use crate::stats::holm;

/// A model in the order of means.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    /// Its place in the input.
    pub item: usize,
    pub mean: f64,
    /// Against the best; `None` of the best itself and where both are equal constants.
    pub p: Option<f64>,
    /// P corrected by Holm for all models compared.
    pub corrected: Option<f64>,
    /// Whether it is in the leading group.
    pub leads: bool,
    /// Whether it cannot be told from the best after the correction, wherever it stands.
    pub leads_corrected: bool,
}

/// Ranks items by their means; `test` is the p of the best and another one being equal. Items whose mean is not finite are left out; equal
/// means keep their order.
pub fn rank(means: &[f64], test: impl Fn(usize, usize) -> Option<f64>) -> Vec<Rank> {
    let mut order: Vec<usize> = (0..means.len()).filter(|&at| means[at].is_finite()).collect();
    order.sort_by(|&a, &b| means[b].total_cmp(&means[a]));
    let Some(&best) = order.first() else { return Vec::new() };
    let ps: Vec<Option<f64>> =
        order.iter().map(|&at| if at == best { None } else { test(best, at) }).collect();
    let corrected = holm(&ps.iter().map(|p| p.unwrap_or(f64::NAN)).collect::<Vec<_>>());
    let mut leading = true;
    let ranked = order.iter().zip(ps).zip(corrected).map(|((&item, p), corrected)| {
        leading &= p.is_none_or(|p| p >= ALPHA);
        let corrected = Some(corrected).filter(|p| !p.is_nan());
        Rank {
            item,
            mean: means[item],
            p,
            corrected,
            leads: leading,
            leads_corrected: corrected.is_none_or(|p| p >= ALPHA),
        }
    });
    ranked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::welch;

    #[test]
    fn the_group_ends_at_the_first_difference() {
        let wide: Vec<f64> = (0..40).map(|n| f64::from(n % 2)).collect();
        let best: Vec<f64> = (0..40).map(|n| 0.9 + f64::from(n % 2) / 100.0).collect();
        let near: Vec<f64> = best.iter().map(|value| value - 0.001).collect();
        let apart: Vec<f64> = best.iter().map(|value| value - 0.1).collect();
        // Few values, so that it cannot be told from the best although it is lower.
        let few = [0.2, 1.0];
        let samples =
            [(0.5, &wide[..]), (0.905, &best), (0.805, &apart), (0.904, &near), (0.6, &few), (f64::NAN, &[])];
        let rank_all = |samples: &[(f64, &[f64])]| {
            let means: Vec<f64> = samples.iter().map(|(mean, _)| *mean).collect();
            rank(&means, |best, at| welch(samples[best].1, samples[at].1).map(|test| test.p))
        };
        let ranked = rank_all(&samples);
        let order: Vec<(usize, bool)> = ranked.iter().map(|rank| (rank.item, rank.leads)).collect();
        assert_eq!(order, [(1, true), (3, true), (2, false), (4, false), (0, false)]);
        assert!(ranked[3].leads_corrected && !ranked[2].leads_corrected);
        assert_eq!(rank_all(&[]), []);
        assert_eq!(
            rank_all(&[(1.0, &[1.0, 1.0]), (1.0, &[1.0])]).iter().filter(|rank| rank.leads).count(),
            2
        );
    }
}

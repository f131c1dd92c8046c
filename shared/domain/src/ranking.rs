//! Ranks of models, and what can be said of those that have less behind them than others.
//!
//! The first values of a run are no random sample: a fast model has met hard tasks that a slow one has not. So only models
//! that cover about the same share of their plan are ranked against each other. The others stand below them, without a rank,
//! each between the two values that it would have if all that is missing were wrong, and if all of it were right.

use crate::control::Better;
use crate::mean::Mean;

/// How far the coverage of a ranked model may lie below the greatest one: one point of a hundred.
const COVERAGE_GAP_MAX: f64 = 0.01;

/// What is lost in adding up shares as floating-point numbers.
const ROUNDING: f64 = 1e-9;

/// The least and the greatest value that a mean can still take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    pub low: f64,
    pub high: f64,
}

/// A model to be placed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Contender {
    pub value: Option<f64>,
    /// Values in it.
    pub covered: u64,
    /// Values planned.
    pub planned: u64,
    /// Between which values it lies, whatever is missing; `None` if that is not known.
    pub bounds: Option<Bounds>,
}

impl Contender {
    /// A model with one mean of values between `least` and `most`.
    pub fn of(mean: Mean, least: f64, most: f64) -> Self {
        let Mean { value, covered, planned } = mean;
        Self { value, covered, planned, bounds: bounds(mean, least, most) }
    }

    /// A model whose value is the mean of the means of its tasks, of scores between 0 and 1. A task of which nothing is planned
    /// says nothing.
    pub fn of_tasks(tasks: impl IntoIterator<Item = Mean>) -> Self {
        let (mut found, mut sum, mut valued) = (Self::default(), 0.0, 0_u64);
        let (mut low, mut high, mut bounded) = (0.0, 0.0, 0_u64);
        for mean in tasks {
            found.covered += mean.covered;
            found.planned += mean.planned;
            if let Some(value) = mean.value {
                sum += value;
                valued += 1;
            }
            if let Some(of_task) = bounds(mean, 0.0, 1.0) {
                low += of_task.low;
                high += of_task.high;
                bounded += 1;
            }
        }
        let tasks = bounded as f64;
        found.value = (valued > 0).then(|| sum / valued as f64);
        found.bounds = (bounded > 0).then(|| Bounds { low: low / tasks, high: high / tasks });
        found
    }

    /// The share of the plan that has a value.
    pub fn coverage(&self) -> f64 {
        if self.planned == 0 { 0.0 } else { self.covered.min(self.planned) as f64 / self.planned as f64 }
    }
}

/// The place of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedPlace {
    /// Its position among the contenders.
    pub contender: usize,
    /// From 1; equal values share one. `None` if it covers too little to be ranked, or has no value.
    pub rank: Option<u64>,
}

/// Places the models: those that can be ranked, the best first; then those that cover less than one point of a hundred below
/// the greatest coverage, in the same order; then those without a value. Equal values keep the order given.
pub fn ranked(contenders: &[Contender], better: Better) -> Vec<RankedPlace> {
    let valued = || contenders.iter().filter(|contender| contender.value.is_some());
    let most = valued().map(Contender::coverage).fold(0.0, f64::max);
    let has_rank = |contender: &Contender| {
        contender.value.is_some() && contender.coverage() >= most - COVERAGE_GAP_MAX - ROUNDING
    };
    // Smaller keys stand first.
    let key = |at: usize| {
        let contender = &contenders[at];
        let value = contender.value.map_or(f64::INFINITY, |value| match better {
            Better::Higher | Better::Neither => -value,
            Better::Lower => value,
        });
        (!has_rank(contender), contender.value.is_none(), value)
    };
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (key(a), key(b));
        (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2))
    });
    let mut places: Vec<RankedPlace> = Vec::with_capacity(order.len());
    for (above, contender) in order.into_iter().enumerate() {
        let rank = has_rank(&contenders[contender]).then(|| match places.last() {
            Some(RankedPlace { contender: last, rank: Some(rank) })
                if contenders[*last].value == contenders[contender].value =>
            {
                *rank
            }
            _ => above as u64 + 1,
        });
        places.push(RankedPlace { contender, rank });
    }
    places
}

/// The mean if all missing values were the least one, and if they were the greatest one.
fn bounds(mean: Mean, least: f64, most: f64) -> Option<Bounds> {
    let planned = mean.planned.max(mean.covered);
    if planned == 0 {
        return None;
    }
    let (known, missing) = (mean.value.unwrap_or(0.0) * mean.covered as f64, planned - mean.covered);
    let with = |end: f64| (known + missing as f64 * end) / planned as f64;
    Some(Bounds { low: with(least), high: with(most) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mean(value: f64, covered: u64, planned: u64) -> Mean {
        Mean { value: (covered > 0).then_some(value), covered, planned }
    }

    fn places(contenders: &[Contender], better: Better) -> Vec<(usize, Option<u64>)> {
        ranked(contenders, better).into_iter().map(|place| (place.contender, place.rank)).collect()
    }

    #[test]
    fn models_with_the_same_coverage_are_ranked_and_the_others_stand_below() {
        let of = |value, covered| Contender::of(mean(value, covered, 100), 0.0, 1.0);
        // The third is the best of all, from a tenth of its plan.
        let all = [of(0.5, 100), of(0.7, 99), of(1.0, 10), of(0.6, 98), of(0.0, 0)];
        assert_eq!(
            places(&all, Better::Higher),
            [(1, Some(1)), (0, Some(2)), (2, None), (3, None), (4, None)]
        );
        assert_eq!(
            places(&all, Better::Lower),
            [(0, Some(1)), (1, Some(2)), (3, None), (2, None), (4, None)]
        );
        assert_eq!(all[2].bounds, Some(Bounds { low: 0.1, high: 1.0 }));
        assert_eq!(all[4].bounds, Some(Bounds { low: 0.0, high: 1.0 }));
    }

    #[test]
    fn a_run_that_has_just_begun_ranks_what_is_equally_far() {
        let of = |value, covered| Contender::of(mean(value, covered, 1000), 0.0, 1.0);
        assert_eq!(places(&[of(0.2, 20), of(0.9, 29)], Better::Higher), [(1, Some(1)), (0, Some(2))]);
        assert_eq!(places(&[of(0.9, 20), of(0.2, 31)], Better::Higher), [(1, Some(1)), (0, None)]);
        assert_eq!(places(&[of(0.9, 0), of(0.2, 0)], Better::Higher), [(0, None), (1, None)]);
        assert_eq!(places(&[], Better::Higher), []);
    }

    #[test]
    fn equal_values_share_a_rank() {
        let of = |value| Contender::of(mean(value, 10, 10), 0.0, 1.0);
        let found = places(&[of(0.5), of(0.9), of(0.5), of(0.1)], Better::Higher);
        assert_eq!(found, [(1, Some(1)), (0, Some(2)), (2, Some(2)), (3, Some(4))]);
    }

    #[test]
    fn tasks_count_the_same_in_value_and_bounds() {
        let tasks = [mean(1.0, 10, 10), mean(0.5, 50, 100), mean(0.0, 0, 4), mean(0.0, 0, 0)];
        let found = Contender::of_tasks(tasks);
        assert_eq!((found.value, found.covered, found.planned), (Some(0.75), 60, 114));
        let Bounds { low, high } = found.bounds.unwrap();
        assert!((low - (1.0 + 0.25 + 0.0) / 3.0).abs() < 1e-12, "{low}");
        assert!((high - (1.0 + 0.75 + 1.0) / 3.0).abs() < 1e-12, "{high}");
    }

    proptest! {
        #[test]
        fn bounds_hold_whatever_comes(scores in prop::collection::vec(0.0..1.0_f64, 1..40), known in 0..40_usize) {
            let known = known.min(scores.len());
            let now = Contender::of_tasks([Mean::of(
                scores.iter().enumerate().map(|(at, score)| (at < known).then_some(*score)),
            )]);
            let end = Mean::of(scores.iter().map(|score| Some(*score))).value.unwrap();
            let Bounds { low, high } = now.bounds.unwrap();
            prop_assert!(low <= end + 1e-12 && end <= high + 1e-12, "{} {} {}", low, end, high);
        }

        #[test]
        fn everybody_has_one_place_and_ranks_follow_values(
            models in prop::collection::vec((0.0..1.0_f64, 0..200_u64), 0..30),
        ) {
            let contenders: Vec<Contender> =
                models.iter().map(|(value, covered)| Contender::of(mean(*value, *covered, 200), 0.0, 1.0)).collect();
            let places = ranked(&contenders, Better::Higher);
            let mut seen: Vec<usize> = places.iter().map(|place| place.contender).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..contenders.len()).collect::<Vec<_>>());
            let ranked: Vec<&RankedPlace> = places.iter().filter(|place| place.rank.is_some()).collect();
            prop_assert!(places.iter().take(ranked.len()).all(|place| place.rank.is_some()));
            for pair in ranked.windows(2) {
                let (a, b) = (&contenders[pair[0].contender], &contenders[pair[1].contender]);
                prop_assert!(a.value >= b.value && pair[0].rank <= pair[1].rank);
                prop_assert!((a.coverage() - b.coverage()).abs() <= COVERAGE_GAP_MAX + ROUNDING);
            }
        }
    }
}

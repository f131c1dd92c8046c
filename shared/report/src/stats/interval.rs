//! Intervals and tests of a mean of tasks: stratified by task, clustered by exercise.
//!
//! Dialogues about one exercise resemble each other, so they are no independent values: what counts is how the means of
//! exercises differ *within* a task. Differences between tasks are no noise, because a benchmark asks these tasks and no
//! others. An interval therefore speaks of these tasks with other exercises; of a task with a single exercise, it speaks of
//! other answers to that one. (E. Miller, "Adding Error Bars to Evals", 2024, sections 2.2 and 3.1: clustered standard errors.)
//!
//! The error is that of a cluster-robust variance for each task, added up with the weights of the tasks; the quantile is
//! Student's, with the degrees of freedom of Satterthwaite (1946). Few exercises near an end of the scale would give intervals
//! that are too short, or none: five right answers do not show that nothing is ever wrong. So one imaginary exercise at each
//! end of the scale is added, as Agresti and Coull (1998) add trials to a proportion. The two are divided among the tasks: a task
//! gets the more of them, the more it may add to the error, which is the case if few exercises count for much. They widen the
//! interval of few exercises clearly, and that of many exercises hardly. `cargo bench -p report --bench coverage` measures how
//! often intervals hold the truth.

use std::collections::BTreeSet;

use crate::stats::samples::{t_critical, t_p};

/// The values of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskValues {
    /// What the task counts for; weights need not add up to 1.
    pub weight: f64,
    /// Values, each with the exercise that it is about.
    pub values: Vec<(u32, f64)>,
}

/// The least and the greatest value that there can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueRange {
    pub low: f64,
    pub high: f64,
}

impl ValueRange {
    /// Of scores.
    pub const SCORE: Self = Self { low: 0.0, high: 1.0 };
    /// Of differences of scores.
    pub const DIFFERENCE: Self = Self { low: -1.0, high: 1.0 };
}

/// An interval around a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// A mean of tasks, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean of the tasks' means by their weights, as it is shown.
    pub mean: f64,
    /// At a confidence of 95 %.
    pub interval: Interval,
    /// Two-sided p of the mean being zero: below 0.05 exactly where the interval leaves out zero.
    pub p: f64,
    /// How many tasks have a single exercise.
    pub single: usize,
    /// Exercises of all tasks.
    pub exercises: usize,
    /// The share of the variance that comes from answers to the same exercise, which more dialogues about it make smaller;
    /// `None` where no exercise of a task was asked twice.
    repeats: Option<f64>,
}

/// About how much more has to be asked to make an interval as narrow as somebody wants it: either more exercises or more
/// dialogues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// How many times as many exercises; of a task with a single one, dialogues.
    pub exercises: u64,
    /// How many times as many dialogues about the same exercises; `None` where no number would do, or it is not known.
    pub dialogues: Option<u64>,
}

impl Estimate {
    /// Half the width of the interval.
    pub fn reach(&self) -> f64 {
        (self.interval.high - self.interval.low) / 2.0
    }

    /// What brings the interval to this half width: the variance falls with the number of exercises, and the part of it that is
    /// chance in single answers with the number of dialogues. `None` where it is as narrow already, or where nothing would do.
    pub fn need(&self, reach: f64) -> Option<Need> {
        let wanted = (reach / self.reach()).powi(2);
        let times = |factor: f64| factor.is_finite().then_some(factor.ceil() as u64);
        let exercises = times(1.0 / wanted).filter(|times| *times > 1)?;
        let of_answers = |repeats: f64| {
            // What is left of the variance if every exercise is asked for ever.
            let room = wanted - (1.0 - repeats);
            times(repeats / room).filter(|_| room > 0.0)
        };
        Some(Need { exercises, dialogues: self.repeats.and_then(of_answers) })
    }
}

/// What one task adds to an estimate.
struct Part {
    mean: f64,
    /// The mean towards the middle of the scale, by the imaginary exercises.
    center: f64,
    /// Variance of the center.
    variance: f64,
    /// Degrees of freedom of the variance.
    freedom: f64,
    /// The part of the variance that is chance in single answers; `None` where no exercise was asked twice.
    repeats: Option<f64>,
    exercises: usize,
}

/// A mean of tasks, and how far it may be off.
struct Moments {
    mean: f64,
    /// The mean towards the middle of the scale, by the imaginary exercises.
    center: f64,
    /// Standard error of the center.
    error: f64,
    /// Degrees of freedom.
    freedom: f64,
    single: usize,
    exercises: usize,
    repeats: Option<f64>,
}

impl Moments {
    fn p(&self) -> f64 {
        t_p(self.center / self.error, self.freedom)
    }
}

/// Estimates the mean of these tasks; `None` of fewer than two values. It does not depend on the order of the values.
pub fn estimate(strata: &[TaskValues], range: ValueRange) -> Option<Estimate> {
    let found = moments(strata, range)?;
    let reach = t_critical(found.freedom) * found.error;
    let low = (found.center - reach).clamp(range.low, range.high).min(found.mean);
    let high = (found.center + reach).clamp(range.low, range.high).max(found.mean);
    let p = found.p();
    let Moments { mean, single, exercises, repeats, .. } = found;
    Some(Estimate { mean, interval: Interval { low, high }, p, single, exercises, repeats })
}

/// The mean and the p of an [`estimate`], for those who need no interval, which takes most of the time.
pub fn mean_and_p(strata: &[TaskValues], range: ValueRange) -> Option<(f64, f64)> {
    moments(strata, range).map(|found| (found.mean, found.p()))
}

fn moments(strata: &[TaskValues], range: ValueRange) -> Option<Moments> {
    let filled: Vec<&TaskValues> =
        strata.iter().filter(|stratum| !stratum.values.is_empty() && stratum.weight > 0.0).collect();
    let weights: f64 = filled.iter().map(|stratum| stratum.weight).sum();
    if filled.iter().map(|stratum| stratum.values.len()).sum::<usize>() < 2 || weights <= 0.0 {
        return None;
    }
    // Proportional to the variance that a task would add if its values were as far apart as they can be.
    let most = |stratum: &TaskValues| (stratum.weight / weights).powi(2) / units(&stratum.values) as f64;
    let (mut mean, mut center, mut variance, mut squares) = (0.0, 0.0, 0.0, 0.0);
    let (mut repeats, mut exercises, mut single) = (Some(0.0), 0, 0);
    for &stratum in &filled {
        let imaginary = 1.0 / filled.iter().map(|other| most(other) / most(stratum)).sum::<f64>();
        let (weight, part) = (stratum.weight / weights, part(&stratum.values, imaginary, range));
        let share = weight * weight * part.variance;
        mean += weight * part.mean;
        center += weight * part.center;
        variance += share;
        squares += share * share / part.freedom;
        repeats = repeats.zip(part.repeats).map(|(sum, of_part)| sum + weight * weight * of_part);
        exercises += part.exercises;
        single += usize::from(part.exercises == 1);
    }
    let (freedom, error) = (variance * variance / squares, variance.sqrt());
    let repeats = repeats.map(|repeats| (repeats / variance).min(1.0));
    Some(Moments { mean, center, error, freedom, single, exercises, repeats })
}

/// How many independent values there are: exercises or, of a single one, its values.
fn units(values: &[(u32, f64)]) -> usize {
    let exercises: BTreeSet<u32> = values.iter().map(|(exercise, _)| *exercise).collect();
    if exercises.len() == 1 { values.len() } else { exercises.len() }
}

fn part(values: &[(u32, f64)], imaginary: f64, range: ValueRange) -> Part {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let exercises: Vec<&[(u32, f64)]> = sorted.chunk_by(|a, b| a.0 == b.0).collect();
    let sum = |of: &[(u32, f64)]| of.iter().map(|(_, value)| value).sum::<f64>();
    // Each unit with its number of values and its mean: exercises or, of a single one, its values.
    let units: Vec<(f64, f64)> = match exercises.as_slice() {
        [_] => sorted.iter().map(|(_, value)| (1.0, *value)).collect(),
        _ => exercises.iter().map(|of| (of.len() as f64, sum(of) / of.len() as f64)).collect(),
    };
    let (count, number) = (units.len() as f64, sorted.len() as f64);
    let mean = sorted.iter().map(|(_, value)| value).sum::<f64>() / number;
    let all = count + 2.0 * imaginary;
    let center = (count * mean + imaginary * (range.low + range.high)) / all;
    // Exercises that were asked more often count for more in the mean, and so in its error.
    let of_units: f64 =
        units.iter().map(|(size, value)| (size * count / number * (value - center)).powi(2)).sum();
    let of_ends = imaginary * ((range.low - center).powi(2) + (range.high - center).powi(2));
    // Imaginary exercises widen an interval; they are no evidence of how wide it is.
    let freedom = (count - 1.0).max(2.0 * imaginary);
    let variance = (of_units + of_ends) / (all - 1.0) / all;
    let repeats = match exercises.as_slice() {
        [_] => Some(variance),
        _ => of_answers(&exercises, number).map(|repeats| repeats.min(variance)),
    };
    Part { mean, center, variance, freedom, repeats, exercises: exercises.len() }
}

/// The variance that chance in single answers gives to the mean of `number` values; `None` where no exercise has two.
fn of_answers(exercises: &[&[(u32, f64)]], number: f64) -> Option<f64> {
    let of_exercise = |of: &&[(u32, f64)]| {
        let mean = of.iter().map(|(_, value)| value).sum::<f64>() / of.len() as f64;
        of.iter().map(|(_, value)| (value - mean).powi(2)).sum::<f64>()
    };
    let freedom = number - exercises.len() as f64;
    (freedom > 0.0).then(|| exercises.iter().map(of_exercise).sum::<f64>() / freedom / number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn task(values: impl IntoIterator<Item = (u32, f64)>) -> TaskValues {
        TaskValues { weight: 1.0, values: values.into_iter().collect() }
    }

    fn width(strata: &[TaskValues]) -> f64 {
        2.0 * estimate(strata, ValueRange::SCORE).unwrap().reach()
    }

    #[test]
    fn exercises_that_differ_widen_the_interval_and_tasks_that_differ_do_not() {
        // Five exercises, each always right or always wrong, against the same values spread over the exercises.
        let apart = task((0..20).map(|n| (n % 5, if n % 5 < 3 { 1.0 } else { 0.0 })));
        let alike = task((0..20).map(|n| (n / 4, if n % 5 < 3 { 1.0 } else { 0.0 })));
        assert!(width(&[apart]) > 1.5 * width(&[alike]));
        let level = |value: f64| task((0..20).map(move |n| (n % 5, value + f64::from(n % 5) / 100.0)));
        let tasks = |values: [f64; 4]| values.map(level);
        let (equal, far) = (width(&tasks([0.5; 4])), width(&tasks([0.1, 0.3, 0.6, 0.9])));
        assert!(far < 1.5 * equal, "{far} {equal}");
    }

    #[test]
    fn equal_cases_of_two_tasks_are_two_exercises() {
        let one = task((0..20).map(|n| (n % 5, f64::from(n % 5) / 5.0)));
        let turned = task((0..20).map(|n| (n % 5, 1.0 - f64::from(n % 5) / 5.0)));
        // Pooled by their numbers, the exercises of both would all have the mean of 0.5.
        assert!(width(&[one, turned]) > 0.2);
    }

    #[test]
    fn many_right_answers_are_no_certainty_and_more_of_them_are_nearer_to_it() {
        let right =
            |exercises: u32| estimate(&[task((0..exercises).map(|n| (n, 1.0)))], ValueRange::SCORE).unwrap();
        let (five, twenty) = (right(5), right(20));
        assert_eq!((five.mean, five.interval.high), (1.0, 1.0));
        assert!(five.interval.low < 0.7 && twenty.interval.low > 0.8, "{five:?} {twenty:?}");
        assert_eq!(estimate(&[task([(0, 1.0)])], ValueRange::SCORE), None);
        assert_eq!(estimate(&[], ValueRange::SCORE), None);
        let none = estimate(&[task((0..9).map(|n| (n, 0.0)))], ValueRange::DIFFERENCE).unwrap();
        assert!(none.p > 0.9 && none.interval.low < 0.0 && none.interval.high > 0.0, "{none:?}");
    }

    #[test]
    fn few_exercises_among_many_are_as_unsure_as_alone() {
        // All right on five exercises; two other tasks with many exercises are known well and say nothing about them.
        let known = || task((0..60).map(|n| (n, f64::from(n % 2))));
        let right = |exercises: u32| task((0..exercises).map(|n| (n, 1.0)));
        let (few, many) = (width(&[known(), known(), right(5)]), width(&[known(), known(), right(60)]));
        assert!(few > 1.35 * many, "{few} {many}");
    }

    #[test]
    fn of_one_exercise_other_answers_are_spoken_of() {
        let found = estimate(&[task((0..20).map(|n| (7, f64::from(n % 2))))], ValueRange::SCORE).unwrap();
        assert_eq!((found.single, found.mean), (1, 0.5));
        assert!(found.interval.low > 0.2 && found.interval.high < 0.8, "{found:?}");
    }

    #[test]
    fn more_dialogues_help_where_answers_differ_and_more_exercises_always_do() {
        let need = |values: Vec<(u32, f64)>, reach: f64| {
            estimate(&[task(values)], ValueRange::SCORE).unwrap().need(reach)
        };
        // Exercises that are always right or always wrong: no number of dialogues tells more about others.
        let apart: Vec<(u32, f64)> = (0..60).map(|n| (n % 20, f64::from(n % 2))).collect();
        let found = need(apart, 0.1).unwrap();
        assert!(found.exercises >= 4 && found.dialogues.is_none(), "{found:?}");
        // Exercises that are all alike, each right three times of six.
        let alike: Vec<(u32, f64)> = (0..120).map(|n| (n / 6, f64::from(n % 2))).collect();
        let single: Vec<(u32, f64)> = (0..120).map(|n| (0, f64::from(n % 2))).collect();
        for values in [alike.clone(), single] {
            let found = need(values, 0.02).unwrap();
            assert!(found.exercises > 4 && found.dialogues.is_some(), "{found:?}");
        }
        assert_eq!(need(alike, 0.5), None, "it is as narrow already");
        let once: Vec<(u32, f64)> = (0..20).map(|n| (n, f64::from(n % 2))).collect();
        assert_eq!(
            need(once, 0.1).unwrap().dialogues,
            None,
            "how answers to one exercise differ is not known"
        );
    }

    proptest! {
        #[test]
        fn the_interval_holds_its_mean_and_depends_on_no_order(
            values in prop::collection::vec((0..3_usize, 0..6_u32, 0.0..1.0_f64), 2..60),
        ) {
            let strata = |values: &[(usize, u32, f64)]| -> Vec<TaskValues> {
                (0..3).map(|at| task(values.iter().filter(|v| v.0 == at).map(|v| (v.1, v.2)))).collect()
            };
            let found = estimate(&strata(&values), ValueRange::SCORE).unwrap();
            prop_assert!(0.0 <= found.interval.low && found.interval.low <= found.mean + 1e-12);
            prop_assert!(found.mean <= found.interval.high + 1e-12 && found.interval.high <= 1.0 + 1e-12);
            let mut turned = values.clone();
            turned.reverse();
            let again = estimate(&strata(&turned), ValueRange::SCORE).unwrap();
            prop_assert!((again.interval.low - found.interval.low).abs() < 1e-9 && (again.p - found.p).abs() < 1e-9);
        }

        #[test]
        fn a_difference_is_certain_where_its_interval_leaves_out_zero(
            values in prop::collection::vec((0..6_u32, -1.0..1.0_f64), 2..60),
        ) {
            let found = estimate(&[task(values)], ValueRange::DIFFERENCE).unwrap();
            // The mean as shown may lie beyond the end towards zero by the imaginary exercises; then it is no evidence.
            if found.interval.low > 1e-9 || found.interval.high < -1e-9 {
                prop_assert!(found.p < 0.05 + 1e-9, "{:?}", found);
            }
            if found.p < 0.05 - 1e-9 {
                prop_assert!(found.interval.low > -1e-9 || found.interval.high < 1e-9, "{:?}", found);
            }
        }
    }
}

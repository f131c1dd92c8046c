//! One number per model out of the categories of a [`Scheme`], and the categories themselves.

use std::collections::{BTreeMap, HashMap};

use domain::ranking::{Bounds, Contender};

use super::scheme::{Scheme, SchemeValue, Weighting};
use crate::dialogues::{ColumnId, Dialogues, State, TaskId};
use crate::stats::SampleSummary;
use crate::stats::describe::mean;
use crate::stats::{Estimate, TaskValues, ValueRange, estimate, welch};

/// A model in one category.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CategoryScore {
    pub n: usize,
    pub mean: f64,
    /// Population standard deviation, which the band of a compass is made of.
    pub sd: f64,
}

/// A model in a scheme.
#[derive(Clone, Debug, PartialEq)]
pub struct Combined {
    pub column: ColumnId,
    /// In the order of the scheme; `None` where the model has no values.
    pub categories: Vec<Option<CategoryScore>>,
    /// Number of values.
    pub n: usize,
    /// `None` where a category has no values: the score would be one of something else.
    pub mean: Option<f64>,
    /// What its place is decided by: the same mean, and how much of the plan of its tasks is in it.
    pub contender: Contender,
    /// Standard deviation of the values with the weights of the mean, with n below.
    pub sd: Option<f64>,
    /// How sure the mean is, for these tasks with other exercises.
    pub estimate: Option<Estimate>,
    /// All values by category, for tests between models.
    values: Vec<Vec<SchemeValue>>,
}

/// Every model in a scheme.
pub fn combined(all: &Dialogues, scheme: &Scheme) -> Vec<Combined> {
    (0..all.columns.len()).map(|column| of(all, scheme, column)).collect()
}

fn of(all: &Dialogues, scheme: &Scheme, column: ColumnId) -> Combined {
    let categories: Vec<Vec<SchemeValue>> =
        scheme.categories.iter().map(|category| category.values(all, column)).collect();
    let values: Vec<f64> = pooled(&categories);
    let scores: Vec<Option<CategoryScore>> = categories
        .iter()
        .map(|values| {
            let summary = SampleSummary::of(values.iter().map(|found| found.value))?;
            Some(CategoryScore { n: summary.n, mean: summary.mean, sd: summary.population_sd })
        })
        .collect();
    let whole = !scores.is_empty() && scores.iter().all(Option::is_some);
    let (mean, sd) = match scheme.weighting {
        Weighting::Pooled => {
            let summary = SampleSummary::of(values.iter().copied());
            (summary.map(|summary| summary.mean), summary.map(|summary| summary.population_sd))
        }
        Weighting::Categories => weighted(&categories),
    };
    let estimate = estimate(&strata(&categories, scheme.weighting), ValueRange::SCORE);
    let mean = mean.filter(|_| whole);
    Combined {
        column,
        contender: Contender { value: mean, ..covered(all, scheme, column, &categories) },
        categories: scores,
        n: values.len(),
        mean,
        sd: sd.filter(|_| whole),
        estimate: estimate.filter(|_| whole),
        values: categories,
    }
}

/// How much of its plan a model has in a scheme, and between what its score lies if all that is missing is wrong, or right. What is
/// missing counts for as many values as what is there.
fn covered(all: &Dialogues, scheme: &Scheme, column: ColumnId, categories: &[Vec<SchemeValue>]) -> Contender {
    let mut found = Contender::default();
    let (mut low, mut missing, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for (category, values) in scheme.categories.iter().zip(categories) {
        let (mut scored, mut planned) = (0, 0);
        for task in category.task_ids(all) {
            let there =
                all.of(column, task).filter(|dialogue| dialogue.state == State::Scored).count() as u64;
            scored += there;
            planned += all.planned(column, task).max(there);
        }
        found.covered += scored;
        found.planned += planned;
        let each = if scored == 0 { 1.0 } else { values.len() as f64 / scored as f64 };
        let lacking = each * (planned - scored) as f64;
        low.push(values.iter().map(|found| found.value).sum::<f64>());
        missing.push(lacking);
        whole.push(values.len() as f64 + lacking);
    }
    let share = |parts: &[f64]| match scheme.weighting {
        Weighting::Pooled => parts.iter().sum::<f64>() / whole.iter().sum::<f64>(),
        Weighting::Categories => {
            parts.iter().zip(&whole).map(|(part, whole)| part / whole).sum::<f64>() / whole.len() as f64
        }
    };
    let (low, open) = (share(&low), share(&missing));
    found.bounds = (low + open).is_finite().then_some(Bounds { low, high: low + open });
    found
}

/// The values of each category task by task, with the weights that they have in the mean.
fn strata(categories: &[Vec<SchemeValue>], weighting: Weighting) -> Vec<TaskValues> {
    let mut strata = Vec::new();
    for category in categories {
        let mut tasks: BTreeMap<TaskId, Vec<(u32, f64)>> = BTreeMap::new();
        for found in category {
            tasks.entry(found.task).or_default().push((found.question.case, found.value));
        }
        let whole = match weighting {
            Weighting::Pooled => 1.0,
            Weighting::Categories => category.len().max(1) as f64,
        };
        strata.extend(
            tasks.into_values().map(|values| TaskValues { weight: values.len() as f64 / whole, values }),
        );
    }
    strata
}

/// The p of two models having the same score. Pooled values are compared by Welch's test, as the journal article does; of
/// categories that count the same, the weighted mean of the differences is tested, question by question.
pub fn test(scheme: &Scheme, a: &Combined, b: &Combined) -> Option<f64> {
    match scheme.weighting {
        Weighting::Pooled => welch(&pooled(&a.values), &pooled(&b.values)).map(|test| test.p),
        Weighting::Categories => {
            let paired = a.values.iter().zip(&b.values).map(|(a, b)| differences(a, b)).collect::<Vec<_>>();
            estimate(&strata(&paired, scheme.weighting), ValueRange::DIFFERENCE).map(|found| found.p)
        }
    }
}

fn pooled(categories: &[Vec<SchemeValue>]) -> Vec<f64> {
    categories.iter().flatten().map(|found| found.value).collect()
}

/// First less second, of what both have.
fn differences(a: &[SchemeValue], b: &[SchemeValue]) -> Vec<SchemeValue> {
    let key = |found: &SchemeValue| (found.task, found.part, found.question);
    let second: HashMap<_, f64> = b.iter().map(|found| (key(found), found.value)).collect();
    let less =
        |found: &SchemeValue| Some(SchemeValue { value: found.value - second.get(&key(found))?, ..*found });
    a.iter().filter_map(less).collect()
}

/// Mean and deviation with the same weight on every category.
fn weighted(categories: &[Vec<SchemeValue>]) -> (Option<f64>, Option<f64>) {
    let of = |each: &dyn Fn(f64) -> f64| {
        let means: Option<Vec<f64>> = categories
            .iter()
            .map(|values| mean(&values.iter().map(|found| each(found.value)).collect::<Vec<_>>()))
            .collect();
        mean(&means?)
    };
    let center = of(&|value| value);
    let sd = center.and_then(|center| of(&|value| (value - center).powi(2))).map(f64::sqrt);
    (center, sd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scheme::parse;
    use crate::dialogues::testing::matrix;

    fn scheme(weighting: &str) -> Scheme {
        let text = format!(
            "[[scheme]]\nname='x'\ntitle='x'\nweighting='{weighting}'\n\
             categories=[{{name='a',parts=[{{tasks=['A*'],score='f1'}}]}},{{name='b',parts=[{{tasks=['B*'],score='f1'}}]}}]"
        );
        parse(&text).unwrap().remove(0)
    }

    #[test]
    fn values_or_categories_count_the_same() {
        let all = matrix(&["m"], &["A1", "A2", "A3", "B"], 4, |_, task, _| if task == 3 { 1.0 } else { 0.0 });
        let pooled = &combined(&all, &scheme("pooled"))[0];
        assert_eq!((pooled.n, pooled.mean), (16, Some(0.25)));
        let alike = &combined(&all, &scheme("categories"))[0];
        assert_eq!((alike.mean, alike.sd), (Some(0.5), Some(0.5)));
        // Interval and test are of the number that is shown.
        assert_eq!(alike.estimate.map(|estimate| estimate.mean), Some(0.5));
        assert_eq!(pooled.estimate.map(|estimate| estimate.mean), Some(0.25));
    }

    #[test]
    fn categories_that_count_the_same_are_tested_as_such() {
        // The second model is worse on the small category only. Of all values that is little, of the score it is half.
        let labels: Vec<String> =
            (0..80).map(|n| format!("A{n}")).chain((0..4).map(|n| format!("B{n}"))).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let all = matrix(&["a", "b"], &labels, 20, |model, task, n| match (model, task) {
            (1, 80..) => 0.2 + f64::from(n % 5) / 50.0,
            (_, 80..) => 0.8 + f64::from(n % 5) / 50.0,
            _ => f64::from(n % 2),
        });
        let p = |weighting: &str| {
            let (scheme, found) = (scheme(weighting), combined(&all, &scheme(weighting)));
            test(&scheme, &found[0], &found[1]).unwrap()
        };
        assert!(p("pooled") > 0.05, "{}", p("pooled"));
        assert!(p("categories") < 0.01, "{}", p("categories"));
    }

    #[test]
    fn without_a_category_there_is_no_score() {
        let all = matrix(&["m"], &["A1"], 4, |_, _, _| 1.0);
        let found = &combined(&all, &scheme("pooled"))[0];
        assert_eq!((found.mean, found.categories[1]), (None, None));
        assert!(found.categories[0].is_some());
    }
}

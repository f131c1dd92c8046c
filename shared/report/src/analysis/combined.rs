//! One number per model out of the categories of a [`Scheme`], and the categories themselves.

use super::scheme::{Scheme, SchemeValue, Weighting};
use crate::dialogues::{ColumnId, Dialogues};
use crate::stats::Summary;
use crate::stats::bootstrap::{Interval, clustered_mean, seed_of};
use crate::stats::describe::mean;

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
    /// Standard deviation of the values with the weights of the mean, with n below.
    pub sd: Option<f64>,
    /// Around the mean, by drawing cases. Only of pooled schemes.
    pub interval: Option<Interval>,
    /// All values, for tests between models.
    pub values: Vec<f64>,
}

/// Every model in a scheme.
pub fn combined(all: &Dialogues, scheme: &Scheme) -> Vec<Combined> {
    (0..all.columns.len()).map(|column| of(all, scheme, column)).collect()
}

fn of(all: &Dialogues, scheme: &Scheme, column: ColumnId) -> Combined {
    let categories: Vec<Vec<SchemeValue>> =
        scheme.categories.iter().map(|category| category.values(all, column)).collect();
    let values: Vec<f64> = categories.iter().flatten().map(|found| found.value).collect();
    let scores: Vec<Option<CategoryScore>> = categories
        .iter()
        .map(|values| {
            let summary = Summary::of(values.iter().map(|found| found.value))?;
            Some(CategoryScore { n: summary.n, mean: summary.mean, sd: summary.population_sd })
        })
        .collect();
    let whole = !scores.is_empty() && scores.iter().all(Option::is_some);
    let (mean, sd) = match scheme.weighting {
        Weighting::Pooled => {
            let summary = Summary::of(values.iter().copied());
            (summary.map(|summary| summary.mean), summary.map(|summary| summary.population_sd))
        }
        Weighting::Categories => weighted(&categories),
    };
    let clustered: Vec<(u32, f64)> =
        categories.iter().flatten().map(|found| (found.case, found.value)).collect();
    let seed = seed_of(&[&all.columns[column].model, &scheme.name]);
    let interval = match scheme.weighting {
        Weighting::Pooled => clustered_mean(&clustered, seed),
        Weighting::Categories => None,
    };
    Combined {
        column,
        categories: scores,
        n: values.len(),
        mean: mean.filter(|_| whole),
        sd: sd.filter(|_| whole),
        interval: interval.filter(|_| whole),
        values,
    }
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
             categories=[{{name='a',parts=[{{tasks=['A*'],score='f1'}}]}},{{name='b',parts=[{{tasks=['B'],score='f1'}}]}}]"
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
    }

    #[test]
    fn without_a_category_there_is_no_score() {
        let all = matrix(&["m"], &["A1"], 4, |_, _, _| 1.0);
        let found = &combined(&all, &scheme("pooled"))[0];
        assert_eq!((found.mean, found.categories[1]), (None, None));
        assert!(found.categories[0].is_some());
    }
}

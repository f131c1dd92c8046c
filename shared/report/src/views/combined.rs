//! One number per model out of the categories of a [`Scheme`], and the group of models that lead.
//!
//! As in the journal article: models in the order of their mean, each compared with the best by a two-sided test at 0.05,
//! until the first difference. Models with fewer or more scattered values are harder to tell from the best, so a model further
//! down may not differ either; it is outside of the group all the same. Beside it stands what is left after Holm's correction
//! for all comparisons with the best.

use std::collections::{BTreeMap, HashMap};

use domain::control::Better;
use domain::ranking::{Bounds, Contender};

use crate::analysis::ALPHA;
use crate::analysis::placing::{self, PlacedColumn, placed};
use crate::analysis::scheme::{Scheme, SchemeValue, Weighting};
use crate::dialogues::{ColumnId, Dialogues, TaskId};
use crate::stats::samples::mean;
use crate::stats::{Estimate, SampleSummary, TaskValues, ValueRange, estimate, holm, welch};
use crate::table::{Cell, Table};
use crate::views::View;

/// See [`table`].
pub static VIEW: View = View {
    name: "combined",
    about: "Combined scores of a scheme, with the leading group",
    table: |all, options| options.order.of(table(all, options.scheme)),
};

/// One row per model within each set of exercises, best first. A star marks the models of the leading group; a model
/// without others to compare with has none, and neither has one that has too little behind it to be ranked.
pub fn table(all: &Dialogues, scheme: &Scheme) -> Table {
    let mut table = Table::default()
        .left(["", "model", "exercises"])
        .right(["n", "score", "sd", "low", "high", "p", "p Holm"])
        .right(scheme.categories.iter().map(|category| &category.name))
        .titled(&scheme.title);
    let headings = all.headings();
    let found = combined(all, scheme);
    let (mut without, mut unranked, mut is_ranked) = (Vec::new(), Vec::new(), false);
    let places = placed(all, |column| found[column].contender, Better::Higher);
    for (exercises, columns) in all.exercise_sets() {
        let places = || places.iter().filter(|place| columns.contains(&place.column));
        let (scored, rest): (Vec<&PlacedColumn>, Vec<&PlacedColumn>) =
            places().partition(|place| found[place.column].mean.is_some());
        without.extend(rest.iter().map(|place| headings[place.column].as_str()));
        let (scored, low): (Vec<&PlacedColumn>, Vec<&PlacedColumn>) =
            scored.into_iter().partition(|place| place.rank.is_some());
        let scored: Vec<&Combined> = scored.iter().map(|place| &found[place.column]).collect();
        let means: Vec<f64> = scored.iter().map(|found| found.mean.unwrap_or(f64::NAN)).collect();
        let has_rivals = means.len() > 1;
        is_ranked |= has_rivals;
        let mut row = |found: &Combined, rank: Option<&Rank>| {
            let is_leader = rank.is_some_and(|rank| rank.leads && has_rivals);
            // Of what is not ranked the bounds are told: an interval would speak of what was asked by chance.
            let interval = found.estimate.filter(|_| rank.is_some()).map(|estimate| estimate.interval);
            let cells = [
                Cell::from(if is_leader { "*" } else { "" }),
                Cell::from(headings[found.column].as_str()),
                Cell::from(exercises.short()),
                Cell::Count(found.n as u64),
                Cell::number(found.mean, 3),
                Cell::number(found.sd, 3),
                Cell::number(interval.map(|interval| interval.low), 3),
                Cell::number(interval.map(|interval| interval.high), 3),
                Cell::p(rank.and_then(|rank| rank.p)),
                Cell::p(rank.and_then(|rank| rank.corrected)),
            ];
            let categories =
                found.categories.iter().map(|score| Cell::number(score.map(|score| score.mean), 3));
            table.row(cells.into_iter().chain(categories));
        };
        for rank in rank(&means, |best, at| test(scheme, scored[best], scored[at])) {
            row(scored[rank.item], Some(&rank));
        }
        for place in low {
            row(&found[place.column], None);
            unranked.push(*place);
        }
    }
    if is_ranked {
        let tests = match scheme.weighting {
            Weighting::Pooled => "Welch's tests of all values",
            Weighting::Categories => "tests of the weighted mean difference on the same questions",
        };
        table.notes.push(format!(
            "* leads: {tests} against the best, down to the first p < 0.05; p Holm: corrected for all comparisons with the best."
        ));
    }
    table.notes.push(
        "sd: of all values, with n below; low, high: 95 % interval of the score, for these tasks with other exercises.".to_owned(),
    );
    for category in &scheme.categories {
        let tasks = category.tasks(all);
        let tasks = if tasks.is_empty() { "no task".to_owned() } else { tasks.join(", ") };
        table.notes.push(format!("{}: {tasks}", category.name));
    }
    table.notes.extend(placing::unranked(&unranked, &headings));
    if !without.is_empty() {
        table.notes.push(format!("Without values in a category, so without a score: {}", without.join(", ")));
    }
    table
}

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
            let there = all.of(column, task).filter(|dialogue| dialogue.is_scored()).count() as u64;
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
}

/// Ranks items by their means; `test` is the p of the best and another one being equal. Items whose mean is not finite are left out; equal
/// means keep their order.
pub fn rank(means: &[f64], test: impl Fn(usize, usize) -> Option<f64>) -> Vec<Rank> {
    let mut order: Vec<usize> = (0..means.len()).filter(|&at| means[at].is_finite()).collect();
    order.sort_by(|&a, &b| means[b].total_cmp(&means[a]));
    let Some(&best) = order.first() else { return Vec::new() };
    let ps: Vec<Option<f64>> =
        order.iter().map(|&at| if at == best { None } else { test(best, at) }).collect();
    let corrected = holm(ps.iter().copied());
    let mut leading = true;
    let ranked = order.iter().zip(ps).zip(corrected).map(|((&item, p), corrected)| {
        leading &= p.is_none_or(|p| p >= ALPHA);
        Rank { item, mean: means[item], p, corrected, leads: leading }
    });
    ranked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scheme::{bundled, named, parse};
    use crate::dialogues::testing::matrix;
    use crate::stats::welch;

    #[test]
    fn who_has_no_rival_does_not_lead() {
        let stars = |models: &[&str]| {
            let scheme = named(&bundled(), "semantic").unwrap();
            let categories =
                scheme.categories.into_iter().filter(|category| category.name == "R-Ana").collect();
            let scheme = Scheme { categories, ..scheme };
            let all = matrix(models, &["RdfFriendCount-turtle-1"], 5, |_, _, n| f64::from(n) / 4.0);
            let mut csv = Vec::new();
            table(&all, &scheme).write_csv(&mut csv).unwrap();
            let csv = String::from_utf8(csv).unwrap();
            csv.lines().filter(|line| line.starts_with('*')).count()
        };
        assert_eq!((stars(&["m"]), stars(&["m", "n"])), (0, 2));
    }

    #[test]
    fn the_best_from_a_part_of_its_plan_does_not_lead() {
        let scheme = named(&bundled(), "semantic").unwrap();
        let categories = scheme.categories.into_iter().filter(|category| category.name == "R-Ana").collect();
        let scheme = Scheme { categories, ..scheme };
        let score = |model, _, n| f64::from(n % 2) / 4.0 + if model == 0 { 0.75 } else { 0.0 };
        let mut all = matrix(&["early", "m", "n"], &["RdfFriendCount-turtle-1"], 3, score);
        all.plan(0, 0, 20);
        let table = table(&all, &scheme);
        let shown = |column: usize| table.rows().iter().map(|row| row[column].shown()).collect::<Vec<_>>();
        assert_eq!(
            (shown(0), shown(1)),
            (
                vec!["*", "*", ""].into_iter().map(str::to_owned).collect(),
                ["m", "n", "early"].map(str::to_owned).to_vec()
            )
        );
        assert_eq!(table.rows()[2][6].value(), None, "no interval of what was asked by chance");
        let told = table.notes.iter().any(|note| note.contains("early (3 of 20 scores): from 0.125 if"));
        assert!(told, "{:?}", table.notes);
    }

    #[test]
    fn what_lacks_a_category_is_named_and_not_ranked() {
        let all = matrix(&["m"], &["Sparql2AnswerListOrga-turtle"], 5, |_, _, _| 1.0);
        let table = table(&all, &named(&bundled(), "sparql").unwrap());
        assert!(table.rows().is_empty());
        assert!(table.notes.iter().any(|note| note.ends_with("without a score: m")), "{:?}", table.notes);
    }

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
        assert!(ranked[3].corrected.unwrap() >= ALPHA && ranked[2].corrected.unwrap() < ALPHA);
        assert_eq!(rank_all(&[]), []);
        assert_eq!(
            rank_all(&[(1.0, &[1.0, 1.0]), (1.0, &[1.0])]).iter().filter(|rank| rank.leads).count(),
            2
        );
    }
}

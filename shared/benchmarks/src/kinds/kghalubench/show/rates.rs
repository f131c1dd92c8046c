//! Every number of a model over its assessments, and means over models.

use std::collections::BTreeSet;

use report::stats::Interval;
use report::table::{Cell, Table};

use crate::kinds::kghalubench::numbers::metrics::{Counts, RateIntervals, Spread};
use crate::kinds::kghalubench::numbers::{ModelMetrics, mean};
use crate::kinds::kghalubench::show::study::{ModelStudy, Study};
use crate::kinds::kghalubench::show::tables;

/// A number that is a mean over assessments.
struct Rate {
    name: &'static str,
    over_assessments: fn(&ModelMetrics) -> Option<Spread>,
    /// Within what it would lie with other questions.
    interval: fn(&RateIntervals) -> Option<Interval>,
    /// The same of all answers together; `None` for what is only defined for an assessment.
    pooled: Option<fn(&Counts) -> Option<f64>>,
}

const RATES: [Rate; 5] = [
    Rate {
        name: "accuracy",
        over_assessments: ModelMetrics::accuracy,
        interval: |of| of.accuracy,
        pooled: Some(Counts::accuracy),
    },
    Rate {
        name: "Wa",
        over_assessments: ModelMetrics::weighted_accuracy,
        interval: |of| of.weighted_accuracy,
        pooled: None,
    },
    Rate {
        name: "abstained",
        over_assessments: ModelMetrics::abstention,
        interval: |of| of.abstention,
        pooled: Some(Counts::abstention),
    },
    Rate {
        name: "Halu_BOK",
        over_assessments: ModelMetrics::breadth_hallucination,
        interval: |of| of.breadth_hallucination,
        pooled: Some(Counts::breadth_hallucination),
    },
    Rate {
        name: "Halu_DOK",
        over_assessments: ModelMetrics::depth_hallucination,
        interval: |of| of.depth_hallucination,
        pooled: Some(Counts::depth_hallucination),
    },
];

/// What the row of all models is called.
const ALL: &str = "all models";

/// Every number of every model: its mean and standard deviation over assessments, and that of all answers pooled.
pub fn of_models(studies: &[&Study]) -> Table {
    let mut table =
        of_rates(studies, "Numbers of models", ["mean %", "sd %", "pooled %"], |rate, metrics| {
            let spread = (rate.over_assessments)(metrics);
            let pooled = rate.pooled.and_then(|pooled| pooled(&metrics.counts));
            [tables::mean(spread), tables::deviation(spread), pooled]
        });
    table.notes.push("mean and sd: over assessments. pooled: of all answers together.".to_owned());
    table
}

/// Within what every number of every model lies.
pub fn intervals(studies: &[&Study]) -> Table {
    let mut table =
        of_rates(studies, "Intervals of numbers", ["mean %", "low %", "high %"], |rate, metrics| {
            let interval = (rate.interval)(&metrics.intervals);
            let (low, high) = (interval.map(|interval| interval.low), interval.map(|interval| interval.high));
            [tables::mean((rate.over_assessments)(metrics)), low, high]
        });
    table.notes.push(
        "low and high: 95 % interval of the mean over assessments, for other questions of these assessments and the same judges."
            .to_owned(),
    );
    table
}

/// A row for every number of every model, with these shares in it.
fn of_rates(
    studies: &[&Study],
    title: &str,
    columns: [&str; 3],
    shares: impl Fn(&Rate, &ModelMetrics) -> [Option<f64>; 3],
) -> Table {
    let mut table = tables::new(studies, title, &[]).left(["number"]).right(columns);
    for study in studies {
        for model in &study.models {
            for rate in &RATES {
                let cells = shares(rate, &model.metrics).map(percent);
                let cells = [Cell::from(rate.name)].into_iter().chain(cells);
                tables::row(&mut table, studies, study, &model.model, cells);
            }
        }
    }
    table
}

/// Means over all models, and over the groups that are named for them: the paper's Table 4.
pub fn of_groups(studies: &[&Study]) -> Table {
    let mut table = Table::default()
        .left(["models", "number"])
        .right(["models with it", "mean %", "sd %"])
        .titled("Means over models");
    let models: Vec<&ModelStudy> = studies.iter().flat_map(|study| &study.models).collect();
    let groups: BTreeSet<&str> = models.iter().filter_map(|model| model.group.as_deref()).collect();
    let named = groups.into_iter().map(Some);
    for group in [None].into_iter().chain(named) {
        let of_group =
            models.iter().filter(|model| group.is_none_or(|group| model.group.as_deref() == Some(group)));
        let of_group: Vec<&ModelMetrics> = of_group.map(|model| &model.metrics).collect();
        for rate in &RATES {
            let spreads: Vec<Spread> =
                of_group.iter().filter_map(|metrics| (rate.over_assessments)(metrics)).collect();
            table.row([
                Cell::from(group.unwrap_or(ALL)),
                Cell::from(rate.name),
                Cell::Count(spreads.len() as u64),
                percent(mean(spreads.iter().map(|spread| spread.mean))),
                percent(mean(spreads.iter().filter_map(|spread| spread.standard_deviation))),
            ]);
        }
    }
    table.notes.push(
        "mean: over models of their means. sd: mean over models of their standard deviations over assessments.".to_owned(),
    );
    table
}

fn percent(share: Option<f64>) -> Cell {
    Cell::number(share.map(|share| 100.0 * share), 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::kghalubench::numbers::Weights;
    use crate::kinds::kghalubench::show::about::ModelFacts;
    use crate::kinds::kghalubench::show::found::testing::found;

    fn shown(table: &Table, row: usize) -> Vec<String> {
        table.rows()[row].iter().map(Cell::shown).collect()
    }

    #[test]
    fn models_have_means_over_assessments_and_pooled_numbers() {
        let study = Study::of(&found(), &Weights::simulated().unwrap(), &ModelFacts::default());
        let table = of_models(&[&study]);
        assert_eq!(table.rows().len(), 10);
        assert_eq!(shown(&table, 0), ["weak-1B", "accuracy", "41.67", "0.00", "41.67"]);
        assert_eq!(shown(&table, 3)[1..], ["Halu_BOK", "33.33", "0.00", "33.33"]);
        let accuracy = shown(&intervals(&[&study]), 0);
        assert_eq!(accuracy[..3], ["weak-1B", "accuracy", "41.67"]);
        let bounds = [3, 4].map(|column: usize| accuracy[column].parse::<f64>().unwrap());
        assert!(bounds[0] < 41.0 && bounds[1] > 42.0 && bounds[1] < 100.0, "{bounds:?}");
    }

    #[test]
    fn groups_of_models_have_means_of_their_own() {
        let about = "[models.weak-1B]\ngroup = \"small\"\n[models.strong-8B]\ngroup = \"large\"\n";
        let about = ModelFacts::parse(about).unwrap();
        let study = Study::of(&found(), &Weights::simulated().unwrap(), &about);
        let table = of_groups(&[&study]);
        assert_eq!(shown(&table, 0), ["all models", "accuracy", "2", "70.83", "0.00"]);
        assert_eq!(shown(&table, 5), ["large", "accuracy", "1", "100.00", "0.00"]);
        assert_eq!(shown(&table, 10), ["small", "accuracy", "1", "41.67", "0.00"]);
        assert_eq!(table.rows().len(), 15);
    }
}

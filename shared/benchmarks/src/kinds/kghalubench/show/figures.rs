//! The figures of KGHaluBench: a function for each, from a [`Study`] to SVG. A new one is named in the list `SHOWING`.

use report::draw::PALETTE;
use report::draw::bars::{Row, Stand, bars};
use report::draw::scale::{Scale, short, ticks};
use report::draw::svg::{Anchor, Breadth, Svg};
use report::draw::text::fitted;

use crate::kinds::kghalubench::draw::frequency::Frequency;
use crate::kinds::kghalubench::numbers::metrics::Filter;
use crate::kinds::kghalubench::numbers::{mean, share};
use crate::kinds::kghalubench::show::study::{ModelStudy, OrderedBy, Study, TypeStudy, frequency_words};

/// Number of models in the bar chart of weighted accuracies, the best ones.
pub const TOP_MODELS: usize = 10;

/// Number of parts into which the range of difficulty is divided.
const BINS: usize = 10;

/// Minimum number of questions in a part; parts with fewer are not drawn.
const BIN_MIN: usize = 5;

/// Weighted accuracy of the best models.
pub fn weighted(study: &Study, breadth: Breadth) -> Svg {
    let mut models: Vec<&ModelStudy> = study.placed().into_iter().map(|(model, _)| model).collect();
    let value = |model: &ModelStudy| model.metrics.weighted_accuracy();
    models.truncate(TOP_MODELS);
    let row = |model: &&ModelStudy| {
        let spread = value(model);
        Row {
            name: model.model.clone(),
            values: vec![spread.map(|spread| spread.mean)],
            deviations: vec![spread.and_then(|spread| spread.standard_deviation)],
        }
    };
    let rows: Vec<Row> = models.iter().map(row).collect();
    let best_by = match study.ordered_by {
        OrderedBy::Wa => "weighted accuracy",
        OrderedBy::Accuracy => "accuracy, as the weights do not know the graph",
    };
    let note = format!(
        "the best models by {best_by}; under weights {}; line: standard deviation over assessments",
        study.weights
    );
    bars(("Weighted accuracy", breadth), &["Wa"], &rows, Stand::Beside, &note)
}

/// Both rates of hallucination, ordered by the size of the model.
pub fn hallucinations(study: &Study, breadth: Breadth) -> Svg {
    let mut models: Vec<&ModelStudy> = study.models.iter().collect();
    let size = |model: &ModelStudy| model.size.unwrap_or(f64::INFINITY);
    models.sort_by(|a, b| size(a).total_cmp(&size(b)));
    let row = |model: &&ModelStudy| {
        let metrics = &model.metrics;
        let rates = [metrics.breadth_hallucination(), metrics.depth_hallucination()];
        of_values(&model.model, rates.map(|rate| rate.map(|spread| spread.mean)).to_vec())
    };
    let rows: Vec<Row> = models.iter().map(row).collect();
    let note = "smaller models first, those of unknown size last";
    bars(
        ("Hallucinations", breadth),
        &["Halu_BOK: other entity", "Halu_DOK: wrong facts"],
        &rows,
        Stand::Beside,
        note,
    )
}

/// Outcomes of answers.
pub fn fates(study: &Study, breadth: Breadth) -> Svg {
    let rows = of_models(study, |model| {
        let counts = &model.metrics.counts;
        shares(&[counts.aligned, counts.hallucinated, counts.abstained], counts.scored)
    });
    bars(
        ("Answers", breadth),
        &["aligned", "other entity", "abstained"],
        &rows,
        Stand::Stacked,
        "of scored questions",
    )
}

/// Number of wrong facts in answers about the entity.
pub fn wrong_facts(study: &Study, breadth: Breadth) -> Svg {
    let rows = of_models(study, |model| {
        let counts = &model.metrics.counts;
        shares(&counts.by_wrong_facts, counts.aligned)
    });
    let names = ["0 wrong facts", "1", "2", "3"];
    bars(("Wrong facts", breadth), &names, &rows, Stand::Stacked, "of answers about the entity")
}

/// Which filter decided about facts.
pub fn filters(study: &Study, breadth: Breadth) -> Svg {
    let rows = of_models(study, |model| {
        Filter::ALL.into_iter().map(|filter| model.metrics.counts.decided(filter)).collect()
    });
    bars(
        ("Deciding stages", breadth),
        &Filter::ALL.map(Filter::stage),
        &rows,
        Stand::Stacked,
        "facts of answers about the entity",
    )
}

/// The types of the questions' entities, by frequency in the graph.
pub fn types(study: &Study, breadth: Breadth) -> Svg {
    let groups = [Frequency::VeryCommon, Frequency::Common, Frequency::Uncommon];
    let questions: u64 = study.types.iter().map(|of_type| of_type.questions).sum();
    let row = |of_type: &TypeStudy| {
        let share = of_type.questions as f64 / questions.max(1) as f64;
        of_values(&of_type.name, groups.map(|group| (group == of_type.frequency).then_some(share)).to_vec())
    };
    let rows: Vec<Row> = study.types.iter().map(row).collect();
    bars(
        ("Types of entities", breadth),
        &groups.map(frequency_words),
        &rows,
        Stand::Stacked,
        "share of the questions",
    )
}

/// Mean points of questions against their estimated difficulty, a line for each model.
pub fn difficulty(study: &Study, breadth: Breadth) -> Svg {
    const LEFT: f64 = 60.0;
    const TOP: f64 = 44.0;
    const BOTTOM: f64 = 430.0;
    const NAME_LINE: f64 = 16.0;
    // Names stand beside the plot, or below it.
    let (right, mut key) = match breadth {
        Breadth::Wide => (breadth.width() - 190.0, (breadth.width() - 176.0, TOP)),
        Breadth::Narrow => (breadth.width() - 16.0, (16.0, BOTTOM + 58.0)),
    };
    let below = match breadth {
        Breadth::Wide => 44.0,
        Breadth::Narrow => 52.0 + NAME_LINE * study.models.len() as f64,
    };
    let mut svg = Svg::new(breadth.width(), BOTTOM + below, "Difficulty and score");
    let (x, y) = (Scale::linear((0.0, 1.0), (LEFT, right)), Scale::linear((0.0, 1.0), (BOTTOM, TOP)));
    for tick in ticks((0.0, 1.0)) {
        svg.line((LEFT, y.at(tick)), (right, y.at(tick)), "faint");
        svg.text((LEFT - 8.0, y.at(tick) + 4.0), Anchor::End, 11.0, "soft", &short(tick));
        svg.line((x.at(tick), TOP), (x.at(tick), BOTTOM), "faint");
        svg.text((x.at(tick), BOTTOM + 16.0), Anchor::Middle, 11.0, "soft", &short(tick));
    }
    let axis = format!("estimated difficulty, under weights {}", study.weights);
    svg.text(((LEFT + right) / 2.0, BOTTOM + 36.0), Anchor::Middle, 11.0, "soft", &axis);
    svg.turned_text(
        (18.0, (TOP + BOTTOM) / 2.0),
        -90.0,
        Anchor::Middle,
        11.0,
        "soft",
        "mean share of points",
    );
    for (number, model) in study.models.iter().enumerate() {
        let colour = PALETTE[number % PALETTE.len()];
        let means = binned(&model.points);
        let places: Vec<(f64, f64)> =
            means.iter().map(|(hard, score, _)| (x.at(*hard), y.at(*score))).collect();
        let look = format!("stroke=\"{colour}\" stroke-width=\"1.5\" fill=\"none\"");
        if places.len() > 1 {
            svg.outline(&places, false, &look, &model.model);
        }
        for ((hard, score, questions), place) in means.iter().zip(&places) {
            let tip =
                format!("{}: difficulty {hard:.2}, points {score:.3}, {questions} questions", model.model);
            svg.circle(*place, 4.0, Some(colour), &tip);
        }
        if key.1 < BOTTOM || breadth == Breadth::Narrow {
            svg.circle(key, 4.0, Some(colour), "");
            let name = fitted(&model.model, 11.0, breadth.width() - key.0 - 18.0);
            svg.text((key.0 + 8.0, key.1 + 4.0), Anchor::Start, 11.0, "", &name);
            key.1 += NAME_LINE;
        }
    }
    let correlation = match study.correlation {
        (Some(spearman), Some(kendall)) => {
            format!("Spearman's rho {spearman:.3}, Kendall's tau-b {kendall:.3}")
        }
        _ => "no correlation can be computed".to_owned(),
    };
    let note = format!(
        "each point: a tenth of the range of difficulty, with {BIN_MIN} questions or more; {correlation}"
    );
    svg.legend(&[&note]);
    svg
}

/// Mean difficulty, mean score and number of the questions in each part of the range.
fn binned(points: &[(f64, f64)]) -> Vec<(f64, f64, usize)> {
    let mut bins: Vec<Vec<(f64, f64)>> = vec![Vec::new(); BINS];
    for (hard, score) in points {
        bins[((hard * BINS as f64) as usize).min(BINS - 1)].push((*hard, *score));
    }
    let told = bins.iter().filter(|bin| bin.len() >= BIN_MIN);
    let means = told.filter_map(|bin| {
        let hard = mean(bin.iter().map(|point| point.0))?;
        Some((hard, mean(bin.iter().map(|point| point.1))?, bin.len()))
    });
    means.collect()
}

fn of_models(study: &Study, values: impl Fn(&ModelStudy) -> Vec<Option<f64>>) -> Vec<Row> {
    study.models.iter().map(|model| of_values(&model.model, values(model))).collect()
}

fn of_values(name: &str, values: Vec<Option<f64>>) -> Row {
    Row { name: name.to_owned(), values, deviations: Vec::new() }
}

fn shares(counts: &[u32], whole: u32) -> Vec<Option<f64>> {
    counts.iter().map(|count| share(*count, whole)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::kghalubench::numbers::Weights;
    use crate::kinds::kghalubench::show::about::ModelFacts;
    use crate::kinds::kghalubench::show::found::testing::found;
    use crate::kinds::kghalubench::show::{Numbers, SHOWING};

    #[test]
    fn every_figure_names_the_models_or_types_and_escapes_them() {
        let mut found = found();
        found.models[0].model = "<b>weak</b>\u{202e}".to_owned();
        let (weights, about) = (Weights::simulated().unwrap(), ModelFacts::default());
        let study = Study::of(&found, &weights, &about);
        let numbers = Numbers { found, weights, about, study: study.clone() };
        for figure in SHOWING.figures {
            let (name, text) = (figure.file, (figure.draw)(&numbers, Breadth::Wide).document());
            let of_models = name != "types";
            assert!(text.contains("&lt;b&gt;weak") == of_models, "{name}");
            let weighs = ["weighted-accuracy", "difficulty"].contains(&name);
            assert_eq!(text.contains(&format!("under weights {}", study.weights)), weighs, "{name}");
            assert!(!text.contains("<b>") && !text.contains('\u{202e}'), "{name}");
        }
    }

    #[test]
    fn parts_of_few_questions_are_left_out() {
        let points: Vec<(f64, f64)> = (0..6).map(|_| (0.25, 0.5)).chain([(0.95, 1.0)]).collect();
        assert_eq!(binned(&points), [(0.25, 0.5, 6)]);
        assert_eq!(binned(&[(1.0, 1.0); 5]), [(1.0, 1.0, 5)]);
    }

    #[test]
    fn a_pipeline_without_answers_has_empty_figures() {
        let mut found = found();
        found.models.clear();
        let (weights, about) = (Weights::default(), ModelFacts::default());
        let study = Study::of(&found, &weights, &about);
        let numbers = Numbers { found, weights, about, study };
        let mut drawn =
            SHOWING.figures.iter().map(|figure| (figure.draw)(&numbers, Breadth::Wide).document());
        assert!(drawn.any(|text| text.contains("There are no values.")));
    }
}

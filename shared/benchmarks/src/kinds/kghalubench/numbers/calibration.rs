//! Learns the weights of [`difficulty`](super::difficulty) from answers that were judged (paper, A.2.3).
//!
//! The paper searched for a machine learning pipeline; here the weights of the statistics are a linear model with a penalty
//! and without negative weights, which is reproducible and can be read.

use std::collections::{BTreeMap, BTreeSet};

use domain::seed::SplitMix64;

use crate::kinds::kghalubench::draw::assessment::Assessment;
use crate::kinds::kghalubench::draw::graph::Statistics;
use crate::kinds::kghalubench::draw::question::Question;
use crate::kinds::kghalubench::numbers::difficulty::{Difficulty, Ranges, normalise};
use crate::kinds::kghalubench::numbers::metrics::{AnsweredQuestion, Fate, mean_difficulty};
use crate::kinds::kghalubench::numbers::weights::Weights;
use crate::kinds::kghalubench::numbers::{mean, rank, shuffle};

/// Share of the entities whose answers weights are learnt from. Answers about the others validate them: answers of several models
/// about one entity resemble each other, so that some of them would foretell the rest without any weights.
pub const TRAINING_SHARE: f64 = 0.7;

/// Penalty on the squares of the weights, per observation, with standardised statistics: enough for statistics with the
/// same information to share a weight.
const PENALTY: f64 = 0.01;

/// Rounds of coordinate descent. Seven weights converge within some tens of rounds.
const ROUNDS: u32 = 200;

/// An answer that was judged.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Who answered.
    pub model: String,
    /// Index of the assessment among those given.
    pub assessment: usize,
    /// Index of the question in it.
    pub question: usize,
    /// The outcome of the question.
    pub fate: Fate,
}

/// How far estimated difficulties and points are correlated: negatively, if the weights foretell anything.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Foretelling {
    /// Spearman's rho.
    pub spearman: Option<f64>,
    /// Kendall's tau-b.
    pub kendall: Option<f64>,
}

impl Foretelling {
    fn of(pairs: &[(f64, f64)]) -> Self {
        Self { spearman: rank::spearman(pairs), kendall: rank::kendall(pairs) }
    }

    /// Whether difficulties fall more clearly where points rise than for the other. Nothing foretells less than something.
    pub fn is_better_than(&self, other: &Self) -> bool {
        self.spearman.unwrap_or(0.0) < other.spearman.unwrap_or(0.0)
    }
}

/// Learnt weights, and how well they predict answers about entities that they were not learnt from.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    pub weights: Weights,
    /// Number of scored observations that the weights were learnt from.
    pub training: usize,
    /// Number of scored observations in the validation part.
    pub validation: usize,
    /// Of these weights, on the validation part.
    pub learnt: Foretelling,
    /// Of weights learnt from the same answers with their points dealt out at random: what a table of weights that knows nothing
    /// foretells, because an answer about another entity decides which relations count.
    pub untaught: Foretelling,
    /// Of the weights that come with the program.
    pub shipped: Foretelling,
}

/// Why nothing can be learnt.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// Too few observations.
    #[error(
        "{scored} scored answers are too few to learn from and to check with; at least {least} are needed"
    )]
    TooFew {
        /// Observations with a score.
        scored: usize,
        /// How many there must be.
        least: usize,
    },
    /// An observation names a question that no assessment has.
    #[error(
        "an answer of {model} belongs to question {question} of assessment {assessment}, which does not exist"
    )]
    NoSuchQuestion {
        /// Who answered.
        model: String,
        /// Index of the assessment.
        assessment: usize,
        /// Index of the question.
        question: usize,
    },
}

/// Minimum number of scored observations.
pub const OBSERVATIONS_MIN: usize = 20;

/// Learns weights from the answers about one part of the entities and validates them on those about the others; `seed` decides
/// the split.
///
/// # Errors
/// See [`CalibrationError`].
pub fn calibrate(
    assessments: &[Assessment],
    observations: &[Observation],
    source: impl Into<String>,
    seed: u64,
) -> Result<Calibration, CalibrationError> {
    let mut scored = Vec::with_capacity(observations.len());
    for observation in observations {
        let found = assessments.get(observation.assessment);
        let question = found.and_then(|assessment| assessment.questions.get(observation.question));
        let Some(question) = question else {
            return Err(CalibrationError::NoSuchQuestion {
                model: observation.model.clone(),
                assessment: observation.assessment,
                question: observation.question,
            });
        };
        if observation.fate.points().is_some() {
            scored.push(Judged { observation, question, fate: observation.fate });
        }
    }
    if scored.len() < OBSERVATIONS_MIN {
        return Err(CalibrationError::TooFew { scored: scored.len(), least: OBSERVATIONS_MIN });
    }
    let mut random = SplitMix64::new(seed);
    let (training, validation) = split(scored, &mut random);
    let foretelling = |weights: &Weights| {
        let difficulty = Difficulty::new(weights, assessments);
        let estimate = |judged: &Judged<'_>| {
            let Observation { assessment, question, .. } = judged.observation;
            let answered = difficulty.answered(assessments, *assessment, *question, judged.fate)?;
            Some((answered.difficulty, f64::from(judged.fate.points()?)))
        };
        Foretelling::of(&validation.iter().filter_map(estimate).collect::<Vec<_>>())
    };
    let weights = learn(&training, source.into());
    let mut fates: Vec<Fate> = training.iter().map(|judged| judged.fate).collect();
    shuffle(&mut fates, &mut random);
    let dealt: Vec<Judged<'_>> =
        training.iter().zip(fates).map(|(judged, fate)| Judged { fate, ..*judged }).collect();
    let shipped = Weights::simulated().map(|shipped| foretelling(&shipped)).unwrap_or_default();
    Ok(Calibration {
        learnt: foretelling(&weights),
        untaught: foretelling(&learn(&dealt, String::new())),
        shipped,
        weights: on_scale(weights, assessments, observations),
        training: training.len(),
        validation: validation.len(),
    })
}

/// A scored observation with its question, and the fate that is taken for its own.
#[derive(Clone, Copy)]
struct Judged<'a> {
    observation: &'a Observation,
    question: &'a Question,
    fate: Fate,
}

fn learn(training: &[Judged<'_>], source: String) -> Weights {
    let weights = Weights {
        source,
        statistics: statistic_weights(training),
        types: type_weights(training),
        relations: relation_weights(training),
        ..Weights::default()
    };
    weights.rounded()
}

/// The weights on the scale of all that was judged.
fn on_scale(weights: Weights, assessments: &[Assessment], observations: &[Observation]) -> Weights {
    let ranges = Ranges::of(&weights, assessments);
    let difficulty = Difficulty::within(&weights, ranges, assessments);
    let mut by_place: BTreeMap<(&str, usize), Vec<AnsweredQuestion>> = BTreeMap::new();
    for Observation { model, assessment, question, fate } in observations {
        let answered = difficulty.answered(assessments, *assessment, *question, *fate);
        by_place.entry((model, *assessment)).or_default().extend(answered);
    }
    match mean_difficulty(by_place.values()) {
        Some(mean) => weights.on(ranges.with(mean)).rounded(),
        None => weights,
    }
}

/// Splits the observations by their entities, at random.
fn split<'a>(scored: Vec<Judged<'a>>, random: &mut SplitMix64) -> (Vec<Judged<'a>>, Vec<Judged<'a>>) {
    let entities: BTreeSet<&str> = scored.iter().map(|judged| judged.question.entity.as_str()).collect();
    let mut entities: Vec<&str> = entities.into_iter().collect();
    shuffle(&mut entities, random);
    entities.truncate((entities.len() as f64 * TRAINING_SHARE).round() as usize);
    let learnt_from: BTreeSet<&str> = entities.into_iter().collect();
    scored.into_iter().partition(|judged| learnt_from.contains(judged.question.entity.as_str()))
}

/// The share of points of a question.
fn score(fate: Fate) -> f64 {
    fate.share().unwrap_or(0.0)
}

/// Fits the share of points to the standardised logarithms of the statistics by coordinate descent, weights not below 0. The
/// largest weight is 1.
fn statistic_weights(training: &[Judged<'_>]) -> BTreeMap<String, f64> {
    let rows: Vec<[Option<f64>; 7]> =
        training.iter().map(|judged| judged.question.statistics.logarithms()).collect();
    let count = rows.len().max(1) as f64;
    let scores: Vec<f64> = training.iter().map(|judged| score(judged.fate)).collect();
    let mean_score = mean(scores.iter().copied()).unwrap_or(0.0);
    let mut rest: Vec<f64> = scores.iter().map(|score| score - mean_score).collect();
    let columns: [(Vec<f64>, f64); 7] = std::array::from_fn(|statistic| standardised(&rows, statistic));
    let mut weights = [0.0_f64; 7];
    for _ in 0..ROUNDS {
        for (weight, (column, _)) in weights.iter_mut().zip(&columns) {
            let square: f64 = column.iter().map(|x| x * x).sum::<f64>() / count;
            let along: f64 = column.iter().zip(&rest).map(|(x, rest)| x * rest).sum::<f64>() / count;
            let better = ((along + square * *weight) / (square + PENALTY)).max(0.0);
            let change = better - *weight;
            *weight = better;
            for (rest, x) in rest.iter_mut().zip(column) {
                *rest -= change * x;
            }
        }
    }
    // Back to the scale of the logarithms.
    for (weight, (_, deviation)) in weights.iter_mut().zip(&columns) {
        *weight = if *deviation > 0.0 { *weight / deviation } else { 0.0 };
    }
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let relative = |weight: f64| if largest > 0.0 { weight / largest } else { 0.0 };
    Statistics::NAMES
        .iter()
        .zip(weights)
        .map(|(name, weight)| ((*name).to_owned(), relative(weight)))
        .collect()
}

/// A column less its mean, divided by its standard deviation, and that deviation. A constant column is all 0, and so is what a
/// graph does not have.
fn standardised(rows: &[[Option<f64>; 7]], column: usize) -> (Vec<f64>, f64) {
    let values: Vec<f64> = rows.iter().filter_map(|row| row[column]).collect();
    let mean = mean(values.iter().copied()).unwrap_or(0.0);
    let variance =
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len().max(1) as f64;
    let deviation = variance.sqrt();
    let divisor = if deviation > 0.0 { deviation } else { 1.0 };
    let standardised = |row: &[Option<f64>; 7]| row[column].map_or(0.0, |value| (value - mean) / divisor);
    (rows.iter().map(standardised).collect(), deviation)
}

fn type_weights(training: &[Judged<'_>]) -> BTreeMap<String, f64> {
    let scores = training.iter().map(|judged| (judged.question.type_id.clone(), score(judged.fate)));
    normalised_means(scores)
}

/// Mean score of each relation of each type, normalised within the type.
fn relation_weights(training: &[Judged<'_>]) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut by_type: BTreeMap<&str, Vec<(String, f64)>> = BTreeMap::new();
    for Judged { question, fate, .. } in training {
        let scores = by_type.entry(&question.type_id).or_default();
        for (number, fact) in question.facts.iter().enumerate() {
            let score = match fate {
                Fate::Aligned(facts) => f64::from(u8::from(facts[number].correct)),
                fate => score(*fate),
            };
            scores.push((fact.relation_id.clone(), score));
        }
    }
    by_type.into_iter().map(|(id, scores)| (id.to_owned(), normalised_means(scores.into_iter()))).collect()
}

fn normalised_means(scores: impl Iterator<Item = (String, f64)>) -> BTreeMap<String, f64> {
    let mut by_name: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, score) in scores {
        by_name.entry(name).or_default().push(score);
    }
    let means = by_name.into_iter().filter_map(|(name, scores)| Some((name, mean(scores)?)));
    let mut means: BTreeMap<String, f64> = means.collect();
    let least = means.values().copied().fold(f64::INFINITY, f64::min);
    let most = means.values().copied().fold(f64::NEG_INFINITY, f64::max);
    for value in means.values_mut() {
        *value = normalise(*value, least, most);
    }
    means
}

//! How hard a question is (paper, 3.1.3 to 3.1.5): the harder, the less known its entity and the harder the relations that it
//! asks for, by given weights. Where the weights bring no scale, a difficulty depends on the other questions too, because their
//! best and least known entities are the ends of the scale.

use crate::kinds::kghalubench::draw::assessment::Assessment;
use crate::kinds::kghalubench::draw::graph::Statistics;
use crate::kinds::kghalubench::draw::question::{FACTS, Question};
use crate::kinds::kghalubench::numbers::mean;
use crate::kinds::kghalubench::numbers::metrics::{AnsweredQuestion, Fate};
use crate::kinds::kghalubench::numbers::weights::{DifficultyScale, Weights};

/// Weight of a type or relation for which none is known.
const UNKNOWN: f64 = 0.5;

/// How well known an entity is: the weighted sum of its statistics. One that the graph does not have weighs nothing.
fn relevance(weights: &Weights, statistics: &Statistics) -> f64 {
    let logarithms = statistics.logarithms();
    let named = Statistics::NAMES.iter().zip(logarithms);
    named
        .filter_map(|(name, value)| Some(weights.statistics.get(*name).copied().unwrap_or(0.0) * value?))
        .sum()
}

fn type_weight(weights: &Weights, type_id: &str) -> f64 {
    weights
        .types
        .get(type_id)
        .copied()
        .unwrap_or_else(|| mean(weights.types.values().copied()).unwrap_or(UNKNOWN))
}

/// How hard a relation is. The paper lets difficulty grow with complexity, and its weights are mean scores, which fall
/// with difficulty: complexity is therefore 1 less the weight.
fn complexity(weights: &Weights, type_id: &str, relation_id: &str) -> f64 {
    let weight = weights.relations.get(type_id).and_then(|weights| weights.get(relation_id).copied());
    weight.map_or_else(|| mean_complexity(weights, type_id), |weight| 1.0 - weight)
}

/// How hard the relations of a type are on average.
fn mean_complexity(weights: &Weights, type_id: &str) -> f64 {
    1.0 - weights
        .relations
        .get(type_id)
        .and_then(|weights| mean(weights.values().copied()))
        .unwrap_or(UNKNOWN)
}

/// How well known an entity is, as a share of the range, before its type is taken into account and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    /// The least and the greatest relevance.
    relevance: [f64; 2],
    /// The least and the greatest popularity, before it is normalised.
    popularity: [f64; 2],
}

impl Ranges {
    /// Of all questions of these assessments.
    pub fn of<'a>(weights: &Weights, assessments: impl IntoIterator<Item = &'a Assessment>) -> Self {
        let questions: Vec<&Question> =
            assessments.into_iter().flat_map(|assessment| &assessment.questions).collect();
        let relevance = range(questions.iter().map(|question| relevance(weights, &question.statistics)));
        let popularity = questions.iter().map(|question| popularity(weights, relevance, question));
        Self { relevance, popularity: range(popularity) }
    }

    /// Those of a scale.
    pub fn of_scale(scale: &DifficultyScale) -> Self {
        Self { relevance: scale.relevance, popularity: scale.popularity }
    }

    /// The scale of these ranges with a mean difficulty.
    pub fn with(self, mean_difficulty: f64) -> DifficultyScale {
        DifficultyScale { mean_difficulty, relevance: self.relevance, popularity: self.popularity }
    }
}

/// The popularity of a question's entity, before it is normalised.
fn popularity(weights: &Weights, range: [f64; 2], question: &Question) -> f64 {
    let relevance = within(relevance(weights, &question.statistics), range);
    weights.type_share * type_weight(weights, &question.type_id) + (1.0 - weights.type_share) * relevance
}

/// Difficulties of the questions of some assessments.
#[derive(Clone, Debug)]
pub struct Difficulty<'w> {
    weights: &'w Weights,
    /// Popularity by assessment and question, in [0, 1].
    popularity: Vec<Vec<f64>>,
}

impl<'w> Difficulty<'w> {
    /// The difficulties of all questions of these assessments, where the best and the least known entity of them are the
    /// ends of the range.
    pub fn new(weights: &'w Weights, assessments: &[Assessment]) -> Self {
        Self::within(weights, Ranges::of(weights, assessments), assessments)
    }

    /// The difficulties of all questions of these assessments, in these ranges.
    pub fn within(weights: &'w Weights, ranges: Ranges, assessments: &[Assessment]) -> Self {
        let of =
            |question: &Question| within(popularity(weights, ranges.relevance, question), ranges.popularity);
        let of_one = |assessment: &Assessment| assessment.questions.iter().map(of).collect();
        Self { weights, popularity: assessments.iter().map(of_one).collect() }
    }

    /// How hard a question was for this answer, in (0, 1). An answer about another entity missed all relations of the
    /// type, so the mean of these counts instead of the three that were asked for. `None` if there is no such question.
    pub fn of(
        &self,
        assessment: usize,
        number: usize,
        question: &Question,
        about_another: bool,
    ) -> Option<f64> {
        let popularity = *self.popularity.get(assessment)?.get(number)?;
        let complexity = if about_another {
            mean_complexity(self.weights, &question.type_id)
        } else {
            let of = |relation: &str| complexity(self.weights, &question.type_id, relation);
            question.facts.iter().map(|fact| of(&fact.relation_id)).sum::<f64>() / FACTS as f64
        };
        Some(sigmoid(self.weights.steepness * (complexity - popularity)))
    }

    /// A question of these assessments with its outcome; `None` if there is no such question.
    pub fn answered(
        &self,
        assessments: &[Assessment],
        assessment: usize,
        question: usize,
        fate: Fate,
    ) -> Option<AnsweredQuestion> {
        let found = assessments.get(assessment)?.questions.get(question)?;
        let difficulty = self.of(assessment, question, found, fate == Fate::Hallucinated)?;
        Some(AnsweredQuestion { question: question as u32, fate, difficulty })
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The least and the greatest of some values; 0 to 0 if there are none.
fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let wider = |range: Option<[f64; 2]>, value: f64| {
        let [least, most] = range.unwrap_or([value, value]);
        Some([least.min(value), most.max(value)])
    };
    values.fold(None, wider).unwrap_or_default()
}

/// A value as a share of a range; what lies beyond an end counts as the end.
fn within(value: f64, [least, most]: [f64; 2]) -> f64 {
    normalise(value, least, most).clamp(0.0, 1.0)
}

/// A value between two others as a share of the way; halfway if they are equal.
pub(crate) fn normalise(value: f64, least: f64, most: f64) -> f64 {
    if most > least { (value - least) / (most - least) } else { UNKNOWN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::kghalubench::draw::frequency::Frequency;
    use crate::kinds::kghalubench::draw::{Fact, Recipe};

    fn question(page_views: u64, relations: [&str; 3]) -> Question {
        let fact = |relation: &str| Fact {
            relation_id: relation.to_owned(),
            relation: relation.to_owned(),
            objects: vec!["x".to_owned()],
        };
        Question {
            entity: format!("e{page_views}"),
            name: "e".to_owned(),
            context: "(t)".to_owned(),
            type_id: "t".to_owned(),
            type_name: "t".to_owned(),
            frequency: Frequency::Common,
            facts: relations.map(fact),
            description: "d".to_owned(),
            statistics: Statistics { page_views: Some(page_views), ..Statistics::default() },
        }
    }

    fn assessment(questions: Vec<Question>) -> Assessment {
        Assessment { number: 0, recipe: Recipe::default(), snapshot: String::new(), as_of: None, questions }
    }

    fn weights() -> Weights {
        let relations = [("a", 1.0), ("b", 0.5), ("c", 0.0), ("d", 0.0)];
        Weights {
            source: "a test".to_owned(),
            statistics: [("page_views".to_owned(), 1.0)].into(),
            types: [("t".to_owned(), 0.5)].into(),
            relations: [("t".to_owned(), relations.map(|(name, weight)| (name.to_owned(), weight)).into())]
                .into(),
            ..Weights::default()
        }
    }

    #[test]
    fn the_formula_by_hand() {
        // ln(1+0) = 0 and ln(1+e^2-1) = 2 are the ends of the range, ln(1+e-1) = 1 its middle; counts are whole, so nearly.
        let weights = weights();
        let questions = [0, 1_000_000, 999].map(|views| question(views, ["a", "b", "c"]));
        let assessments = [assessment(questions.to_vec())];
        let difficulty = Difficulty::new(&weights, &assessments);
        // Complexity: mean of 0, 0.5 and 1. Popularity: 0, 1, and ln(1000)/ln(1000001).
        let of = |number: usize| difficulty.of(0, number, &assessments[0].questions[number], false).unwrap();
        assert!((of(0) - 1.0 / (1.0 + (-2.5_f64).exp())).abs() < 1e-12);
        assert!((of(1) - 1.0 / (1.0 + 2.5_f64.exp())).abs() < 1e-12);
        let middle = 1000_f64.ln() / 1_000_001_f64.ln();
        assert!((of(2) - 1.0 / (1.0 + (-5.0 * (0.5 - middle)).exp())).abs() < 1e-12);
        // About another entity: the mean over a, b, c and d, which is 1 - 1.5/4.
        let another = difficulty.of(0, 0, &assessments[0].questions[0], true).unwrap();
        assert!((another - 1.0 / (1.0 + (-5.0 * 0.625_f64).exp())).abs() < 1e-12);
    }

    #[test]
    fn hard_relations_and_unknown_entities_make_hard_questions() {
        let weights = weights();
        let questions = vec![question(10, ["a", "b", "b"]), question(10_000, ["a", "b", "b"])];
        let assessments = [assessment(questions)];
        let difficulty = Difficulty::new(&weights, &assessments);
        let little_known = difficulty.of(0, 0, &assessments[0].questions[0], false).unwrap();
        let well_known = difficulty.of(0, 1, &assessments[0].questions[1], false).unwrap();
        assert!(little_known > well_known);
        let harder = difficulty.of(0, 0, &question(10, ["c", "d", "b"]), false).unwrap();
        assert!(harder > little_known);
        assert_eq!(difficulty.of(1, 0, &assessments[0].questions[0], false), None);
    }

    #[test]
    fn a_scale_from_elsewhere_decides_how_well_known_an_entity_is() {
        let weights = weights();
        let questions = [0, 1_000_000].map(|views| question(views, ["a", "b", "c"]));
        let wide = Ranges::of(&weights, &[assessment(questions.to_vec())]);
        assert_eq!(Ranges::of_scale(&wide.with(0.4)), wide);
        // Alone each is as well known as any other; between the two it is the least known, or the best.
        for (question, alone, in_range) in [(&questions[0], 0.0, 2.5_f64), (&questions[1], 0.0, -2.5)] {
            let assessments = [assessment(vec![question.clone()])];
            let of = |difficulty: Difficulty<'_>| difficulty.of(0, 0, question, false).unwrap();
            assert!((of(Difficulty::new(&weights, &assessments)) - sigmoid(alone)).abs() < 1e-12);
            assert!((of(Difficulty::within(&weights, wide, &assessments)) - sigmoid(in_range)).abs() < 1e-12);
        }
        // Nobody is better known than the best.
        let assessments = [assessment(vec![question(u64::MAX, ["a", "b", "c"])])];
        let beyond = Difficulty::within(&weights, wide, &assessments);
        assert!(
            (beyond.of(0, 0, &assessments[0].questions[0], false).unwrap() - sigmoid(-2.5)).abs() < 1e-12
        );
    }

    #[test]
    fn what_no_weight_is_known_of_counts_as_average() {
        let none = Weights::default();
        let assessments = [assessment(vec![question(1, ["x", "y", "z"])])];
        let difficulty = Difficulty::new(&none, &assessments);
        assert_eq!(difficulty.of(0, 0, &assessments[0].questions[0], false), Some(0.5));
    }
}

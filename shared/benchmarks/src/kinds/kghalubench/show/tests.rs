//! Tests that numbers of two benchmarks about one graph, its easier and its harder half, can stand beside each other.

use crate::kinds::kghalubench::draw::Assessment;
use crate::kinds::kghalubench::numbers::{Difficulty, DifficultyScale, Weights};
use crate::kinds::kghalubench::show::about::ModelFacts;
use crate::kinds::kghalubench::show::found::testing::found;
use crate::kinds::kghalubench::show::found::{JudgedQuestion, ModelFound, PipelineNumbers};
use crate::kinds::kghalubench::show::scale::CommonScale;
use crate::kinds::kghalubench::show::study::Study;

/// The weights without the scale that they bring.
fn without_scale() -> Weights {
    Weights { version: 1, scale: None, ..Weights::simulated().unwrap() }
}

/// The easier and the harder half of the questions of a benchmark, as benchmarks of their own.
fn halves(weights: &Weights) -> [PipelineNumbers; 2] {
    let mut whole = found();
    // Everybody answers everything alike, so that a question is as hard for one as for the other.
    let difficulty = Difficulty::new(weights, &whole.assessments);
    let mut places: Vec<(f64, JudgedQuestion)> = whole.models[1]
        .answers
        .iter()
        .map(|answer| {
            let question = &whole.assessments[answer.assessment].questions[answer.question];
            (difficulty.of(answer.assessment, answer.question, question, false).unwrap(), *answer)
        })
        .collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    whole.models.remove(0);
    let half = |places: &[(f64, JudgedQuestion)], name: &str| {
        let questions = places
            .iter()
            .map(|(_, place)| whole.assessments[place.assessment].questions[place.question].clone());
        let assessment = Assessment { questions: questions.collect(), ..whole.assessments[0].clone() };
        let answers = (0..places.len()).map(|question| JudgedQuestion {
            assessment: 0,
            question,
            ..places[question].1
        });
        let model = ModelFound { answers: answers.collect(), ..whole.models[0].clone() };
        PipelineNumbers {
            pipeline: name.to_owned(),
            assessments: vec![assessment],
            models: vec![model],
            ..PipelineNumbers::default()
        }
    };
    let (easy, hard) = places.split_at(places.len() / 2);
    [half(easy, "easy"), half(hard, "hard")]
}

#[test]
fn the_halves_of_a_graph_stand_on_one_scale() {
    let weights = without_scale();
    let halves = halves(&weights);
    let shown = halves.each_ref();
    let scale = CommonScale::of(&shown, &weights);
    let weighted = |scale: &CommonScale| {
        shown.map(|found| {
            let study = Study::on(scale, found, &weights, &ModelFacts::default());
            study.models[0].metrics.weighted_accuracy().unwrap().mean
        })
    };
    let [easy, hard] = weighted(&scale);
    // Both halves are answered rightly: more is said by the hard one, and their mean is what it was.
    assert!(easy < 0.9 && hard > 1.1, "{easy} {hard}");
    assert!((easy + hard - 2.0).abs() < 1e-9, "{easy} {hard}");
    assert!(scale.words().contains("of all benchmarks shown"));
    // Each on a scale of its own says nothing of the other.
    for found in shown {
        let alone = CommonScale::of(&[found], &weights);
        let study = Study::on(&alone, found, &weights, &ModelFacts::default());
        assert!((study.models[0].metrics.weighted_accuracy().unwrap().mean - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_later_benchmark_stands_on_the_scale_of_the_weights() {
    let halves = halves(&without_scale());
    let shown = halves.each_ref();
    let scale = DifficultyScale { mean_difficulty: 0.5, relevance: [0.0, 30.0], popularity: [0.0, 1.0] };
    let weights = without_scale().on(scale);
    for shown in [&shown[..], &shown[..1], &shown[1..]] {
        let scale = CommonScale::of(shown, &weights);
        assert_eq!(scale.mean_difficulty(), Some(0.5));
        assert!(scale.words().contains("of the weights"), "{}", scale.words());
    }
    // A scale says nothing of a graph that it was not made on.
    let elsewhere = Weights::default().on(scale);
    assert!(CommonScale::of(&shown, &elsewhere).words().contains("of all benchmarks shown"));
}

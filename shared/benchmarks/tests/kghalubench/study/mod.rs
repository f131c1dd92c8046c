//! Simulated models on invented graphs: for the test and for the example that prints the figures.

use benchmarks::kinds::kghalubench::draw::assessment::{Assessment, Recipe, draw};
use benchmarks::kinds::kghalubench::draw::simulated::{Knowledge, Recall};
use benchmarks::kinds::kghalubench::draw::{Dump, Mapping};
use benchmarks::kinds::kghalubench::numbers::calibration::{Calibration, Observation, calibrate};
use benchmarks::kinds::kghalubench::numbers::metrics::{
    AnsweredQuestion, FactDecision, Fate, Filter, ModelMetrics, mean_difficulty,
};
use benchmarks::kinds::kghalubench::numbers::{Difficulty, Weights};
use domain::seed::SplitMix64;

pub const MODELS: usize = 25;
pub const ASSESSMENTS: u32 = 10;

/// What the weights that come with the program say of themselves.
const SOURCE: &str =
    "25 simulated models, not language models, on 10 assessments of an invented knowledge graph";

/// From weak to strong.
fn model(number: usize) -> Knowledge {
    let place = number as f64 / (MODELS - 1) as f64;
    Knowledge { skill: 3.0 * place - 1.5, candour: if number.is_multiple_of(3) { 0.6 } else { 0.1 } }
}

/// The invented graph of a seed.
fn invented(seed: u64) -> Dump {
    let mapping = Mapping::from_toml(harness::invented_graph::MAPPING).unwrap();
    Dump::parse(harness::invented_graph::turtle(seed).as_bytes(), rdf::RdfFormat::Turtle, mapping).unwrap()
}

fn assessments(graph_seed: u64, seed: u64) -> Vec<Assessment> {
    let mut dump = invented(graph_seed);
    (0..ASSESSMENTS)
        .map(|number| draw(&mut dump, Recipe { seed, ..Recipe::default() }, number).unwrap())
        .collect()
}

fn fate(recall: Recall) -> Fate {
    match recall {
        Recall::Abstains => Fate::Abstained,
        Recall::Invents => Fate::Hallucinated,
        Recall::Knows(facts) => Fate::Aligned(facts.map(|correct| FactDecision { correct, by: Filter::Nli })),
    }
}

fn fates(assessments: &[Assessment], number: usize, seed: u64) -> Vec<Vec<Fate>> {
    let mut random = SplitMix64::new(seed ^ SplitMix64::mix(number as u64));
    let model = model(number);
    let mut of_one = |assessment: &Assessment| {
        assessment.questions.iter().map(|question| fate(model.recall(question, random.next_u64()))).collect()
    };
    assessments.iter().map(&mut of_one).collect()
}

/// Weights learnt from all models on a graph of its own.
pub fn calibrated(graph_seed: u64) -> Calibration {
    let assessments = assessments(graph_seed, 1);
    let mut observations = Vec::new();
    for number in 0..MODELS {
        for (assessment, fates) in fates(&assessments, number, 7).into_iter().enumerate() {
            for (question, fate) in fates.into_iter().enumerate() {
                observations.push(Observation {
                    model: format!("model {number}"),
                    assessment,
                    question,
                    fate,
                });
            }
        }
    }
    calibrate(&assessments, &observations, SOURCE, 3).unwrap()
}

/// Mean over models of the standard deviations of accuracy and weighted accuracy over assessments.
pub fn mean_deviations(weights: &Weights, graph_seed: u64, seed: u64) -> (f64, f64) {
    let assessments = assessments(graph_seed, seed);
    let difficulty = Difficulty::new(weights, &assessments);
    let answered = |number| {
        let fates = fates(&assessments, number, seed);
        let of_assessment = |(index, fates): (usize, &Vec<Fate>)| {
            let of = |(place, fate): (usize, &Fate)| {
                let question = &assessments[index].questions[place];
                let hard = difficulty.of(index, place, question, *fate == Fate::Hallucinated).unwrap();
                AnsweredQuestion { question: place as u32, fate: *fate, difficulty: hard }
            };
            fates.iter().enumerate().map(of).collect()
        };
        fates.iter().enumerate().map(of_assessment).collect()
    };
    let answered: Vec<Vec<Vec<AnsweredQuestion>>> = (0..MODELS).map(answered).collect();
    let average = mean_difficulty(answered.iter().flatten());
    let (mut plain, mut weighted) = (0.0, 0.0);
    for of_model in &answered {
        let metrics = ModelMetrics::of(of_model, average);
        plain += metrics.accuracy().unwrap().standard_deviation.unwrap() / MODELS as f64;
        weighted += metrics.weighted_accuracy().unwrap().standard_deviation.unwrap() / MODELS as f64;
    }
    (plain, weighted)
}

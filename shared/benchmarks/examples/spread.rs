//! Does weighting by difficulty make assessments agree more? Simulated models answer assessments of one invented graph, with
//! weights learnt in another. Prints how estimated difficulty and score correlate (the paper: Spearman -0.403, Kendall -0.299),
//! and over 100 seeds how often the weighted accuracy varies less over ten assessments than the plain accuracy (the paper:
//! standard deviations of 2.45 and 2.57). It asks no language model and writes no file, so the figures say whether the method
//! works, and nothing about real models.
//!
//! Run: cargo run --release -p benchmarks --example spread

#![allow(clippy::unwrap_used, reason = "a study of invented data: what is missing is a defect of the study")]

#[path = "../tests/kghalubench/study/mod.rs"]
mod study;

const SEEDS: u64 = 100;

fn main() {
    let calibration = study::calibrated(11);
    println!(
        "learnt from {} answers; on {} others: Spearman {:.3}, Kendall {:.3}",
        calibration.training,
        calibration.validation,
        calibration.learnt.spearman.unwrap_or(f64::NAN),
        calibration.learnt.kendall.unwrap_or(f64::NAN)
    );
    let mut narrower = 0;
    let (mut plain, mut weighted) = (0.0, 0.0);
    for seed in 0..SEEDS {
        let (accuracy, wa) = study::mean_deviations(&calibration.weights, 22, 1_000 + seed);
        plain += accuracy / SEEDS as f64;
        weighted += wa / SEEDS as f64;
        narrower += u64::from(wa < accuracy);
    }
    println!(
        "standard deviation over 10 assessments, mean over {} models and {SEEDS} seeds: accuracy {:.2} %, Wa {:.2} %",
        study::MODELS,
        100.0 * plain,
        100.0 * weighted
    );
    println!("Wa varies less in {narrower} of {SEEDS}");
}

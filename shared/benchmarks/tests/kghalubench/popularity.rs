//! Simulated models know well-known entities better; weights learnt from them must predict their scores.

use benchmarks::kinds::kghalubench::numbers::calibration::{
    CalibrationError, OBSERVATIONS_MIN, Observation, calibrate,
};
use benchmarks::kinds::kghalubench::numbers::metrics::Fate;

use crate::study;

#[test]
fn estimated_difficulty_falls_where_scores_rise() {
    let calibration = study::calibrated(11);
    assert!(calibration.learnt.spearman.unwrap() < -0.2, "{:?}", calibration.learnt);
    assert!(calibration.learnt.kendall.unwrap() < -0.15, "{:?}", calibration.learnt);
    let weights = &calibration.weights;
    assert!(
        weights.statistics["page_views"] > 0.0 && weights.statistics.values().all(|weight| *weight >= 0.0)
    );
    assert_eq!(weights.types.len(), 20);
    for weight in
        weights.types.values().chain(weights.relations.values().flat_map(|of_type| of_type.values()))
    {
        assert!((0.0..=1.0).contains(weight));
    }
    // Seven tenths of the entities, and with them about as many of the answers.
    let all = study::MODELS * 1_500;
    assert_eq!(calibration.training + calibration.validation, all);
    assert!(calibration.training.abs_diff(all * 7 / 10) < all / 50, "{}", calibration.training);
    // Without anything to learn difficulty says much less.
    assert!(calibration.learnt.is_better_than(&calibration.untaught));
    assert!(calibration.weights.scale.is_some_and(|scale| scale.mean_difficulty > 0.2));
}

#[test]
fn the_weights_that_come_with_the_program_are_those_of_the_simulated_models() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/kinds/kghalubench/numbers/simulated.weights.toml");
    let learnt = study::calibrated(11).weights.to_toml().unwrap();
    if std::env::var_os("KGFLEET_BLESS").is_some() {
        std::fs::write(path, &learnt).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept == learnt, "KGFLEET_BLESS=1 writes {path} anew");
}

#[test]
fn weights_of_one_world_weigh_another() {
    let calibration = study::calibrated(11);
    let (accuracy, weighted) = study::mean_deviations(&calibration.weights, 22, 5);
    assert!(accuracy > 0.0 && weighted > 0.0 && weighted < 2.0 * accuracy, "{accuracy} {weighted}");
}

#[test]
fn too_little_to_learn_from_is_an_error() {
    let observation =
        Observation { model: "m".to_owned(), assessment: 0, question: 0, fate: Fate::Abstained };
    let unknown = CalibrationError::NoSuchQuestion { model: "m".to_owned(), assessment: 0, question: 0 };
    assert_eq!(calibrate(&[], &[observation], "none", 1), Err(unknown));
    assert_eq!(
        calibrate(&[], &[], "none", 1),
        Err(CalibrationError::TooFew { scored: 0, least: OBSERVATIONS_MIN })
    );
}

//! Which numbers come out of the verdicts.
//!
//! [`token_set`] is the part of the entity similarity that needs no model. [`difficulty`] says how hard a question is under
//! given [`weights`], [`calibration`] learns them, [`metrics`] counts verdicts.

pub mod calibration;
pub mod difficulty;
pub mod metrics;
pub mod rank;
pub mod token_set;
pub mod weights;

pub use difficulty::{Difficulty, Ranges};
pub use metrics::{Fate, ModelMetrics};
pub use weights::{DifficultyScale, Weights};

use domain::seed::SplitMix64;

/// The mean of these values; `None` of none.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    report::stats::samples::mean(&values.into_iter().collect::<Vec<f64>>())
}

/// A part of a whole; `None` of nothing.
pub(crate) fn share(part: u32, whole: u32) -> Option<f64> {
    (whole > 0).then(|| f64::from(part) / f64::from(whole))
}

/// Brings values into an order of chance, by the shuffle of Fisher and Yates.
pub(crate) fn shuffle<T>(values: &mut [T], random: &mut SplitMix64) {
    for last in (1..values.len()).rev() {
        values.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}

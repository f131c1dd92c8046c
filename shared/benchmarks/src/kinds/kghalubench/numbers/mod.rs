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

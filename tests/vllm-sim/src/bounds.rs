//! Bounds of configuration values.

use std::fmt;

/// A configuration value out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    /// The value's path, such as `models[0].max_model_len`.
    pub key: String,
    /// The bound that it breaks.
    pub problem: String,
}

impl ConfigError {
    pub(crate) fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }

    /// Fails unless `low <= value <= high`; NaN is out of every range.
    pub(crate) fn in_range<T: PartialOrd + Copy + fmt::Display>(
        key: impl Into<String>,
        value: T,
        low: T,
        high: T,
    ) -> Result<(), Self> {
        if value >= low && value <= high {
            return Ok(());
        }
        Err(Self::new(key, format!("must be between {low} and {high}, not {value}")))
    }
}

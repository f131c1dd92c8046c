//! Means, and how much of the plan they cover.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A mean over the planned values that exist. If some are missing, every display says so, because the first values
/// are not a random sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Mean {
    /// The mean; `None` if there are no values.
    pub value: Option<f64>,
    /// Number of values in it.
    pub covered: u64,
    /// Number of values planned.
    pub planned: u64,
}

impl Mean {
    /// The mean of the values that exist, summed in their order.
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let (mut sum, mut covered, mut planned) = (0.0, 0_u64, 0_u64);
        for value in values {
            planned += 1;
            if let Some(value) = value {
                covered += 1;
                sum += value;
            }
        }
        Self { value: (covered > 0).then(|| sum / covered as f64), covered, planned }
    }

    /// Whether no planned value is missing.
    pub fn is_whole(&self) -> bool {
        self.covered >= self.planned
    }
}

/// `0.148`, or `0.148 (9/26)` if values are missing, or `-` if all are. Three digits unless the format says how many.
impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        match self.value {
            None => f.write_str("-"),
            Some(value) if self.is_whole() => write!(f, "{value:.digits$}"),
            Some(value) => write!(f, "{value:.digits$} ({}/{})", self.covered, self.planned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_over_less_than_was_planned_says_so() {
        let nine = (0..26).map(|task| (task < 9).then_some(0.148));
        assert_eq!(Mean::of(nine).to_string(), "0.148 (9/26)");
        assert_eq!(Mean::of([Some(0.5), Some(1.0)]).to_string(), "0.750");
        assert_eq!(format!("{:.4}", Mean::of([Some(0.5), None])), "0.5000 (1/2)");
        assert_eq!(Mean::of([None, None]).to_string(), "-");
        assert_eq!(Mean::of([]).to_string(), "-");
        assert!(!Mean::of([None]).is_whole());
    }
}

//! How much of a fleet a benchmark gets beside others.

use serde::{Deserialize, Serialize};

/// Greatest priority.
pub const PRIORITY_MAX: u32 = 100;

/// A share of what a submitter gets of a fleet: one of 20 gets twice as much as one of 10. From 1 to [`PRIORITY_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Priority(u32);

impl Priority {
    /// `None` if there is no such priority.
    pub fn new(number: u32) -> Option<Self> {
        (1..=PRIORITY_MAX).contains(&number).then_some(Self(number))
    }

    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(10)
    }
}

impl From<Priority> for u32 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

impl TryFrom<u32> for Priority {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        Self::new(number).ok_or_else(|| format!("a priority is from 1 to {PRIORITY_MAX}, not {number}"))
    }
}

impl std::fmt::Display for Priority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number: u32 =
            text.parse().map_err(|_| format!("a priority is a number from 1 to {PRIORITY_MAX}"))?;
        Self::try_from(number)
    }
}

//! A cap: how many tokens a benchmark may use before nothing more of it is asked.
//!
//! Every record is counted, also one that is no result: a dialogue that failed was paid for, and so was one that was asked again.
//! What was used follows from the records alone.

use std::fmt;

use domain::{ModelUsage, RunId};
use serde::{Deserialize, Serialize};

/// The table `[cap]` of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cap {
    /// Tokens of prompts and answers, at least 1.
    pub tokens: u64,
}

impl Cap {
    /// The field that cannot be used, and what is wrong with it.
    pub(super) fn problem(self) -> Option<(&'static str, String)> {
        (self.tokens == 0).then(|| ("cap.tokens", "is 0; it must be at least 1".to_owned()))
    }

    /// Whether so many tokens are as many as may be used.
    pub(crate) fn reached(self, used: u64) -> Option<CapReached> {
        (used >= self.tokens).then_some(CapReached::Tokens { used, of: self.tokens })
    }
}

/// Tokens of prompts and answers, as far as servers counted them.
pub(crate) fn tokens_of(usage: &ModelUsage) -> u64 {
    usage.prompt_tokens.saturating_add(usage.completion_tokens)
}

/// Why a cap lets nothing more be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CapReached {
    Tokens {
        used: u64,
        of: u64,
    },
    /// The runs of its judged benchmark are still to be counted.
    Uncounted,
}

impl CapReached {
    /// The reason as metrics name it.
    pub(crate) const WORD: &'static str = "cap";

    /// The reason with what to do about it. `is_fleet`: the benchmark is one of a fleet.
    pub(crate) fn told(&self, benchmark: &RunId, is_fleet: bool) -> String {
        if *self == Self::Uncounted {
            return self.to_string();
        }
        let command = match is_fleet {
            true => format!("kgfleet submit CONFIG --extend {benchmark}"),
            false => "kgfleet run CONFIG".to_owned(),
        };
        format!("{self}; raise `cap.tokens` in the configuration, and `{command}` goes on")
    }
}

impl fmt::Display for CapReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens { used, of } => {
                write!(f, "capped: {} of {} tokens used", grouped(*used), grouped(*of))
            }
            Self::Uncounted => f.write_str("capped: what it has used is being counted"),
        }
    }
}

/// A count as people write it: `1 000 412`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_reached_by_as_much_as_it_allows() {
        let reached = |tokens, used| Cap { tokens }.reached(used).map(|reached| reached.to_string());
        assert_eq!(reached(1_000_000, 999_999), None);
        let told = "capped: 1 000 412 of 1 000 000 tokens used";
        assert_eq!(reached(1_000_000, 1_000_412).as_deref(), Some(told));
        assert_eq!(reached(100, 100).as_deref(), Some("capped: 100 of 100 tokens used"));
    }

    #[test]
    fn people_are_told_what_to_raise_and_how() {
        let (tokens, name) = (CapReached::Tokens { used: 7, of: 7 }, RunId::new("r"));
        let told = tokens.told(&name, true);
        assert!(
            told.contains("`cap.tokens`") && told.contains("`kgfleet submit CONFIG --extend r`"),
            "{told}"
        );
        assert!(tokens.told(&name, false).contains("`kgfleet run CONFIG`"));
        assert_eq!(CapReached::Uncounted.told(&name, true), CapReached::Uncounted.to_string());
    }

    #[test]
    fn a_number_that_no_server_sends_ends_a_run_at_once() {
        let usage = ModelUsage { prompt_tokens: u64::MAX, completion_tokens: 5, ..ModelUsage::default() };
        assert_eq!(tokens_of(&usage), u64::MAX);
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        let shown = [0, 12, 999, 1_000, 65_536, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "12", "999", "1 000", "65 536", "1 234 567"]);
    }
}

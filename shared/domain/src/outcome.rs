//! How a dialogue ended. Not scored is not zero: whatever has no score has a cause and never a number.

use serde::{Deserialize, Serialize};

use crate::{Infos, Scores};

/// The end of a dialogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Outcome {
    /// Evaluated.
    Scored {
        /// The verdict.
        scores: Scores,
        /// What explains it.
        infos: Infos,
    },
    /// Answered, and the answers have no score: those of a judge that fit none of the words it was offered.
    Unscored {
        /// For counting and for `kgfleet retry --cause`.
        cause: FailureCause,
        /// What the evaluation found all the same.
        infos: Infos,
        /// Why there is no score, for people.
        message: String,
    },
    /// Not answered, or not evaluated, for this reason.
    Failed {
        /// For counting and for `kgfleet retry --cause`.
        cause: FailureCause,
        /// What happened, with which input, for people.
        message: String,
    },
}

impl Outcome {
    /// Whether there are scores.
    pub fn is_scored(&self) -> bool {
        matches!(self, Self::Scored { .. })
    }

    /// Why there are no scores; `None` when there are.
    pub fn failure(&self) -> Option<FailureCause> {
        match self {
            Self::Scored { .. } => None,
            Self::Unscored { cause, .. } | Self::Failed { cause, .. } => Some(*cause),
        }
    }
}

/// Why a dialogue, or one model call, has no answer or no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureCause {
    /// The server could not be reached or the connection broke.
    Connection,
    /// No answer, or no further token, within the deadline.
    Timeout,
    /// The server is full (503, or 429 without a quota text).
    Overloaded,
    /// The provider limits the rate of calls (429).
    RateLimited,
    /// The account's quota is used up: waiting seconds does not help.
    QuotaExhausted,
    /// The server failed (5xx), or sent what no version of the API sends.
    Server,
    /// The server ended the generation itself (`finish_reason: abort`, cut stream).
    Aborted,
    /// The key was refused (401, 403).
    Unauthorized,
    /// The server does not serve the model asked for (404).
    ModelNotFound,
    /// The server answered with another model than the one asked for.
    WrongModel,
    /// The server refused the request as malformed (400).
    BadRequest,
    /// The conversation is longer than the model's context.
    ContextExceeded,
    /// Our evaluator failed; never the fault of an answer.
    EvaluatorFailed,
    /// Its unit became a dead letter: workers died while it ran alone.
    Poisoned,
    /// Reserved; no such record is written today.
    Cancelled,
    /// A judge replied, and never with one of the words that it was offered.
    JudgeUnparseable,
}

impl FailureCause {
    /// Every cause, for help texts and tables.
    pub const ALL: [Self; 16] = [
        Self::Connection,
        Self::Timeout,
        Self::Overloaded,
        Self::RateLimited,
        Self::QuotaExhausted,
        Self::Server,
        Self::Aborted,
        Self::Unauthorized,
        Self::ModelNotFound,
        Self::WrongModel,
        Self::BadRequest,
        Self::ContextExceeded,
        Self::EvaluatorFailed,
        Self::Poisoned,
        Self::Cancelled,
        Self::JudgeUnparseable,
    ];

    /// The name used in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Overloaded => "overloaded",
            Self::RateLimited => "rate-limited",
            Self::QuotaExhausted => "quota-exhausted",
            Self::Server => "server",
            Self::Aborted => "aborted",
            Self::Unauthorized => "unauthorized",
            Self::ModelNotFound => "model-not-found",
            Self::WrongModel => "wrong-model",
            Self::BadRequest => "bad-request",
            Self::ContextExceeded => "context-exceeded",
            Self::EvaluatorFailed => "evaluator-failed",
            Self::Poisoned => "poisoned",
            Self::Cancelled => "cancelled",
            Self::JudgeUnparseable => "judge-unparseable",
        }
    }
}

impl std::fmt::Display for FailureCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for FailureCause {
    type Err = UnknownCause;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|cause| cause.as_str() == text)
            .ok_or_else(|| UnknownCause(text.to_owned()))
    }
}

/// Unknown failure cause.
#[derive(Debug, thiserror::Error)]
#[error("unknown failure cause `{0}`; expected one of {known}", known = FailureCause::ALL.map(FailureCause::as_str).join(", "))]
pub struct UnknownCause(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_reads_back_from_its_name_and_its_json() {
        for cause in FailureCause::ALL {
            assert_eq!(cause.as_str().parse::<FailureCause>().unwrap(), cause);
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.as_str());
        }
        assert!("gremlins".parse::<FailureCause>().unwrap_err().to_string().contains("timeout"));
    }
}

//! How a dialogue ended. A dialogue without scores has a cause instead; it is never counted as a score of zero.
//!
//! A cause is added to [`FailureCause`] and explained in `docs/errors-and-logging.md`. Which causes park a model is
//! decided in `worker::breaker`.

use serde::{Deserialize, Serialize};

use crate::cut_text::ShortMessage;
use crate::record::bounded::BoundedScores;
use crate::{Infos, Scores};

/// The end of a dialogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", try_from = "OutcomeJson")]
pub enum Outcome {
    /// Evaluated.
    Scored {
        /// The verdict.
        scores: Scores,
        /// What explains it.
        infos: Infos,
    },
    /// Answered, but no answer has a score: no reply of a judge is one of the words that it was offered.
    Unscored {
        /// For counting and for `kgfleet retry --cause`.
        cause: FailureCause,
        /// What the evaluation found.
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

/// The fields of [`Outcome`] side by side. Serde would read a tagged enum into a generic tree first, which copies
/// hundreds of scores and infos and takes longer than reading the rest of a record.
#[derive(Deserialize)]
struct OutcomeJson {
    state: OutcomeState,
    scores: Option<BoundedScores>,
    cause: Option<FailureCause>,
    infos: Option<Infos>,
    message: Option<ShortMessage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutcomeState {
    Scored,
    Unscored,
    Failed,
}

impl TryFrom<OutcomeJson> for Outcome {
    type Error = String;

    fn try_from(json: OutcomeJson) -> Result<Self, Self::Error> {
        fn given<T>(value: Option<T>, field: &str) -> Result<T, String> {
            value.ok_or_else(|| format!("missing field `{field}`"))
        }
        let OutcomeJson { state, scores, cause, infos, message } = json;
        Ok(match state {
            OutcomeState::Scored => {
                Self::Scored { scores: given(scores, "scores")?.0, infos: given(infos, "infos")? }
            }
            OutcomeState::Unscored => Self::Unscored {
                cause: given(cause, "cause")?,
                infos: given(infos, "infos")?,
                message: given(message, "message")?.0,
            },
            OutcomeState::Failed => {
                Self::Failed { cause: given(cause, "cause")?, message: given(message, "message")?.0 }
            }
        })
    }
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

named! {
    /// Why a dialogue, or one model call, has no answer or no score.
    pub enum FailureCause {
        /// The server could not be reached or the connection broke.
        Connection = "connection",
        /// No answer, or no further token, within the deadline.
        Timeout = "timeout",
        /// The server is full (503, or 429 without a quota text).
        Overloaded = "overloaded",
        /// The provider limits the rate of calls (429).
        RateLimited = "rate-limited",
        /// The account's quota is used up: waiting seconds does not help.
        QuotaExhausted = "quota-exhausted",
        /// The server failed (5xx), or sent what no version of the API sends.
        Server = "server",
        /// The server ended the generation itself (`finish_reason: abort`, cut stream).
        Aborted = "aborted",
        /// The key was refused (401, 403).
        Unauthorized = "unauthorized",
        /// The server does not serve the model asked for (404).
        ModelNotFound = "model-not-found",
        /// The server answered with another model than the one asked for.
        WrongModel = "wrong-model",
        /// The server refused the request as malformed (400).
        BadRequest = "bad-request",
        /// The conversation is longer than the model's context.
        ContextExceeded = "context-exceeded",
        /// Our evaluator failed; never the fault of an answer.
        EvaluatorFailed = "evaluator-failed",
        /// Its unit became a dead letter: workers died while it ran alone.
        Poisoned = "poisoned",
        /// Reserved; no such record is written today.
        Cancelled = "cancelled",
        /// A judge replied, and never with one of the words that it was offered.
        JudgeUnparseable = "judge-unparseable",
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
    fn an_outcome_reads_back_from_its_json_and_lacks_no_field() {
        let values = || serde_json::from_str::<Scores>(r#"{"z":{"f1":0.1},"a":-0.0}"#).unwrap();
        let (cause, message) = (FailureCause::JudgeUnparseable, "odd");
        for (outcome, json) in [
            (
                Outcome::Scored { scores: values(), infos: values() },
                r#"{"state":"scored","scores":{"z":{"f1":0.1},"a":-0.0},"infos":{"z":{"f1":0.1},"a":-0.0}}"#,
            ),
            (
                Outcome::Unscored { cause, infos: values(), message: message.into() },
                r#"{"state":"unscored","cause":"judge-unparseable","infos":{"z":{"f1":0.1},"a":-0.0},"message":"odd"}"#,
            ),
            (
                Outcome::Failed { cause, message: message.into() },
                r#"{"state":"failed","cause":"judge-unparseable","message":"odd"}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&outcome).unwrap(), json);
            assert_eq!(serde_json::from_str::<Outcome>(json).unwrap(), outcome);
            let whole: serde_json::Value = serde_json::from_str(json).unwrap();
            for field in whole.as_object().unwrap().keys() {
                let mut lacking = whole.clone();
                lacking.as_object_mut().unwrap().remove(field);
                let error = serde_json::from_value::<Outcome>(lacking).unwrap_err().to_string();
                assert!(error.contains(&format!("missing field `{field}`")), "{error}");
            }
        }
    }

    #[test]
    fn every_cause_reads_back_from_its_name_and_its_json() {
        for cause in FailureCause::ALL {
            assert_eq!(cause.as_str().parse::<FailureCause>().unwrap(), cause);
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.as_str());
        }
        assert!("gremlins".parse::<FailureCause>().unwrap_err().to_string().contains("timeout"));
    }
}

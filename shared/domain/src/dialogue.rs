//! One dialogue: up to three rounds of prompt and answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::chat::{FinishReason, Usage};
use crate::oddity::Oddity;

named! {
    /// What a prompt is for: the opening, or one of the follow-ups that an evaluation asks for.
    pub enum PromptKind {
        /// The first prompt of a dialogue.
        First = "first",
        /// The answer does not parse.
        Syntax = "syntax",
        /// The query parses and has an empty result.
        EmptyResult = "empty-result",
        /// The answer is not exactly one fenced code block.
        Structure = "structure",
        /// The document parses but does not contain the expected data.
        Content = "content",
        /// The data is right but the formatting was changed.
        Formatting = "formatting",
        /// The reply of a judge is none of the words that it was offered.
        Choice = "choice",
        /// Instructions above the conversation. Part of a task's wording, never asked as a prompt of its own.
        System = "system",
    }
}

/// A message of the benchmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    pub kind: PromptKind,
    /// The text as sent.
    pub text: String,
}

/// A message of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The text that is scored and sent back as history: reasoning is not part of it.
    pub text: String,
    /// Reasoning, from the server's own field or from `<think>` blocks. Never scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Why the model stopped, if the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Token counts.
    #[serde(default)]
    pub usage: Usage,
    /// What is odd about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<Oddity>,
}

impl Answer {
    /// An answer without anything but its text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            reasoning: None,
            finish_reason: None,
            usage: Usage::default(),
            oddities: Vec::new(),
        }
    }
}

/// One prompt and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// What was asked.
    pub prompt: Prompt,
    /// When the prompt was sent.
    pub prompted_at: Timestamp,
    /// What came back.
    pub answer: Answer,
    /// When the answer was complete.
    pub answered_at: Timestamp,
    /// Transport attempts that failed before this answer came, oldest first.
    #[serde(
        default,
        deserialize_with = "crate::record::bounded::failed_calls",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub failed_calls: Vec<FailedCall>,
}

/// How long a dialogue took, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DialogueTime {
    /// From its start to the last answer, as LLM-KG-Bench measures its `duration`; to its end if there is no answer.
    pub dialogue_s: f64,
    /// From the last answer to the end: the evaluation, and the wait for it.
    pub evaluation_s: f64,
}

impl DialogueTime {
    /// `answered` are the times at which answers were complete. A clock that was set back in between gives zero.
    pub fn of(start: Timestamp, answered: impl IntoIterator<Item = Timestamp>, end: Timestamp) -> Self {
        let last = answered.into_iter().last().unwrap_or(end);
        // Divided once, so that a decimal fraction stays the nearest number to it.
        let seconds =
            |from: Timestamp, to: Timestamp| (to.duration_since(from).as_nanos() as f64 / 1e9).max(0.0);
        Self { dialogue_s: seconds(start, last), evaluation_s: seconds(last, end) }
    }
}

/// A model call that failed in transport and was retried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCall {
    pub at: Timestamp,
    pub cause: crate::outcome::FailureCause,
    /// What the server or the network said, shortened.
    #[serde(deserialize_with = "crate::cut_text::message")]
    pub message: String,
    /// Tokens of an answer that was thrown away.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialogue_ends_with_its_last_answer() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let time = |answers: &[i64], end| {
            DialogueTime::of(at(10), answers.iter().map(|&second| at(second)), at(end))
        };
        assert_eq!(time(&[12, 15], 60), DialogueTime { dialogue_s: 5.0, evaluation_s: 45.0 });
        let micros = |micros: i64| Timestamp::from_microsecond(micros).unwrap();
        assert_eq!(DialogueTime::of(micros(1), [micros(2_000_000)], micros(2_000_000)).dialogue_s, 1.999_999);
        assert_eq!(time(&[], 60), DialogueTime { dialogue_s: 50.0, evaluation_s: 0.0 });
        assert_eq!(
            time(&[9], 8),
            DialogueTime { dialogue_s: 0.0, evaluation_s: 0.0 },
            "the clock was set back"
        );
    }
}

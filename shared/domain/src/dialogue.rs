//! One dialogue: up to three rounds of prompt and answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::chat::{FinishReason, Usage};

/// What a prompt is for: the opening, or one of the follow-ups that an evaluation asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptKind {
    /// The first prompt of a dialogue.
    First,
    /// The answer does not parse.
    Syntax,
    /// The query parses and finds nothing.
    EmptyResult,
    /// The answer is not exactly one fenced code block.
    Structure,
    /// The document parses and does not hold the expected data.
    Content,
    /// The data is right and the formatting was changed.
    Formatting,
    /// The reply of a judge is none of the words that it was offered.
    Choice,
    /// Instructions above the conversation. Part of a task's wording, never asked as a prompt of its own.
    System,
}

impl PromptKind {
    /// The kinds a task may ask for after an answer.
    pub const FOLLOW_UPS: [Self; 6] =
        [Self::Syntax, Self::EmptyResult, Self::Structure, Self::Content, Self::Formatting, Self::Choice];

    /// The name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Syntax => "syntax",
            Self::EmptyResult => "empty-result",
            Self::Structure => "structure",
            Self::Content => "content",
            Self::Formatting => "formatting",
            Self::Choice => "choice",
            Self::System => "system",
        }
    }
}

impl std::fmt::Display for PromptKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What the benchmark says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// What it is for.
    pub kind: PromptKind,
    /// The text as sent.
    pub text: String,
}

/// What the model says, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The text that is scored and sent back as history: reasoning is not part of it.
    pub text: String,
    /// Reasoning, from the server's own field or from `<think>` blocks. Never scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Why the model stopped, where the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Token counts.
    #[serde(default)]
    pub usage: Usage,
}

impl Answer {
    /// An answer of which only the text is known.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), reasoning: None, finish_reason: None, usage: Usage::default() }
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_calls: Vec<FailedCall>,
}

/// A model call that failed for a reason of transport and was repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCall {
    /// When it was given up.
    pub at: Timestamp,
    /// Why, as a closed word.
    pub cause: crate::outcome::FailureCause,
    /// What the server or the network said, shortened.
    pub message: String,
}

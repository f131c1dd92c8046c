//! What is sent to a language model and what comes back, independent of any provider's wire format.
//!
//! Only types: the calls are in `models`, and the bounds of sampling parameters are checked in
//! `coordinator::plan::configuration`. A new sampling parameter is added to [`Sampling`], to that check, and to each
//! connector, which either sends it or refuses it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions above the conversation. Not every model knows this role.
    System,
    /// The benchmark.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text, unmodified.
    pub content: String,
}

impl Message {
    /// Instructions above the conversation.
    pub fn system(content: impl Into<String>) -> Self {
        Self { role: Role::System, content: content.into() }
    }

    /// A message of the benchmark.
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }
}

/// Sampling parameters. Unset fields are not sent, so the server's defaults apply, as in the published runs.
/// `max_tokens` is the exception (see [`Sampling::TOKENS_DEFAULT`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// Softmax temperature, 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus probability, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Number of highest-probability tokens kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Smallest probability kept, relative to the likeliest token, 0 to 1 (vLLM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f64>,
    /// -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// 1 is neutral (vLLM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_penalty: Option<f64>,
    /// Maximum number of tokens of one answer; reduced to what the context leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Texts that end an answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// `low`, `medium` or `high`, for reasoning models that support it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
}

impl Sampling {
    /// Default of `max_tokens`, as in the published runs for Claude.
    pub const TOKENS_DEFAULT: u32 = 4096;
}

/// Lists the fields that are set, such as `temperature 0, top_p 0.9`.
impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = serde_json::to_value(self).unwrap_or_default();
        let set: Vec<String> =
            fields.as_object().into_iter().flatten().map(|(name, value)| format!("{name} {value}")).collect();
        f.write_str(if set.is_empty() { "the server's own" } else { "" })?;
        f.write_str(&set.join(", "))
    }
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model ended its answer.
    Stop,
    /// `max_tokens` or the context was reached.
    Length,
    /// The provider withheld the rest.
    ContentFilter,
    /// vLLM's repetition detector ended the answer.
    Repetition,
    /// A reason unknown to this version, in the server's word.
    Other(String),
}

/// Tokens of one model call as the server counted them; servers differ in what they report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the whole prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Tokens generated, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Prompt tokens found in the server's prefix cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Generated tokens spent on reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

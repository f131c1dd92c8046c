//! What is sent to a language model and what comes back, independent of any provider's wire format.
//!
//! Only types: the calls are in `models`, and the bounds of sampling parameters are checked in
//! `coordinator::plan::configuration`. A new sampling parameter is added to [`Sampling`], to that check, and to each
//! connector, which either sends it or refuses it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

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
/// `max_tokens` is the exception (see [`Sampling::tokens`]).
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
    /// Maximum number of tokens of one answer; reduced to what the context leaves. See [`Sampling::tokens`].
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
    /// Default of `max_tokens` where the model's context is not known, as in the published runs for Claude.
    pub const TOKENS_DEFAULT: u32 = 4096;

    /// Most tokens of an answer where its limit follows the model's context: as many as makers of reasoning models recommend for
    /// theirs (Qwen3), so that a model without an end stops within the time of a call.
    pub const TOKENS_OF_CONTEXT_MAX: u32 = 32_768;

    /// The limit of tokens of an answer, before a prompt takes its part of the context, in tokens.
    pub fn tokens(&self, context: Option<u32>) -> u32 {
        let default =
            context.map_or(Self::TOKENS_DEFAULT, |context| context.min(Self::TOKENS_OF_CONTEXT_MAX));
        self.max_tokens.unwrap_or(default)
    }
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
    Other(#[serde(deserialize_with = "crate::cut_text::message")] String),
}

/// Most tokens that a server can have counted for one call: a million times what any model reads. A larger number is none.
pub const TOKENS_MAX: u64 = 1 << 40;

/// Tokens of one model call as the server counted them; servers differ in what they report. A count above [`TOKENS_MAX`], also in
/// a record that is read, is as if the server had not said any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the whole prompt.
    #[serde(deserialize_with = "plausible", skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Tokens generated, reasoning included.
    #[serde(deserialize_with = "plausible", skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Prompt tokens found in the server's prefix cache.
    #[serde(deserialize_with = "plausible", skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Generated tokens spent on reasoning.
    #[serde(deserialize_with = "plausible", skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The counts that a server can have meant.
    pub fn plausible(self) -> Self {
        let within = |count: Option<u64>| count.filter(|count| *count <= TOKENS_MAX);
        Self {
            prompt_tokens: within(self.prompt_tokens),
            completion_tokens: within(self.completion_tokens),
            cached_tokens: within(self.cached_tokens),
            reasoning_tokens: within(self.reasoning_tokens),
        }
    }
}

fn plausible<'de, D: Deserializer<'de>>(count: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<u64>::deserialize(count)?.filter(|count| *count <= TOKENS_MAX))
}

/// The sum of counts; `None` if one of them was not told: a part would look like a whole.
pub fn tokens_of_all(counts: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    counts.into_iter().try_fold(0_u64, |sum, count| Some(sum.saturating_add(count?)))
}

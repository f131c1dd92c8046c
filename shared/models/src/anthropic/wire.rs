//! The JSON of Anthropic's Messages API.

use std::borrow::Cow;

use domain::Role;
use serde::{Deserialize, Serialize};

/// Body of `POST /v1/messages`.
#[derive(Serialize)]
pub(super) struct MessagesBody<'a> {
    pub(super) model: &'a str,
    pub(super) max_tokens: u32,
    /// There is no system role; instructions have a field of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system: Option<WireContent<'a>>,
    pub(super) messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_k: Option<u32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_config: Option<OutputConfig<'a>>,
}

#[derive(Serialize)]
pub(super) struct WireMessage<'a> {
    pub(super) role: Role,
    pub(super) content: WireContent<'a>,
}

/// A text of a request.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum WireContent<'a> {
    Plain(Cow<'a, str>),
    /// The provider keeps everything up to its end in its prompt cache for some minutes.
    Cached([CachedText<'a>; 1]),
}

impl<'a> WireContent<'a> {
    /// A text that other requests begin with, too. Of an empty one nothing can be kept.
    pub(super) fn cached(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        if text.is_empty() {
            return Self::Plain(text);
        }
        Self::Cached([CachedText { kind: "text", text, cache_control: CacheControl { kind: "ephemeral" } }])
    }
}

#[derive(Serialize)]
pub(super) struct CachedText<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: Cow<'a, str>,
    cache_control: CacheControl,
}

#[derive(Serialize)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
pub(super) struct OutputConfig<'a> {
    pub(super) effort: &'a str,
}

/// A whole answer.
#[derive(Deserialize)]
pub(super) struct MessagesReply {
    pub(super) model: Option<String>,
    pub(super) content: Vec<Block>,
    pub(super) stop_reason: Option<String>,
    #[serde(default)]
    pub(super) usage: AnthropicUsage,
}

/// A part of an answer. Kinds that we never request, such as tool use, are recognised and skipped.
#[derive(Deserialize)]
pub(super) struct Block {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
}

#[derive(Default, Deserialize)]
pub(super) struct AnthropicUsage {
    /// Prompt tokens outside the prompt cache.
    pub(super) input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}

/// Body of an error.
#[derive(Deserialize)]
pub(super) struct ErrorReply {
    pub(super) error: ErrorDetail,
}

#[derive(Default, Deserialize)]
pub(super) struct ErrorDetail {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) message: String,
}

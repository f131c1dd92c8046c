//! The JSON of OpenAI's chat completions API and of the vLLM routes beside it.
//!
//! Requests are serialised directly to bytes and answers parsed directly from them; unused fields are skipped. Whole
//! answers and the pieces of a stream differ only in `message` and `delta`, so one type parses both.

use std::borrow::Cow;
use std::fmt;

use domain::Message;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::OpenAiConfig;
use crate::chat::ChatRequest;

/// Body of `POST /v1/chat/completions`.
#[derive(Serialize)]
pub(super) struct ChatBody<'a> {
    model: &'a str,
    messages: &'a [Message],
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repetition_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(flatten)]
    extra: &'a serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    /// Without it, a stream does not report token counts.
    include_usage: bool,
}

impl<'a> ChatBody<'a> {
    pub(super) fn new(
        config: &'a OpenAiConfig,
        request: &'a ChatRequest,
        messages: &'a [Message],
        max_tokens: u32,
        completion_tokens: bool,
    ) -> Self {
        let sampling = &request.sampling;
        Self {
            model: &config.model,
            messages,
            stream: config.stream,
            stream_options: config.stream.then_some(StreamOptions { include_usage: true }),
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            top_k: sampling.top_k,
            min_p: sampling.min_p,
            presence_penalty: sampling.presence_penalty,
            frequency_penalty: sampling.frequency_penalty,
            repetition_penalty: sampling.repetition_penalty,
            max_tokens: (!completion_tokens).then_some(max_tokens),
            max_completion_tokens: completion_tokens.then_some(max_tokens),
            stop: &sampling.stop,
            reasoning_effort: sampling.reasoning_effort.as_deref(),
            seed: request.seed.filter(|_| config.send_seed),
            extra: &config.extra_body,
        }
    }

    pub(super) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        // Room for the texts, some escapes, and the fields: one allocation in nearly every call.
        let texts: usize = self.messages.iter().map(|message| message.content.len() + 48).sum();
        let mut bytes = Vec::with_capacity(texts + texts / 8 + 512);
        serde_json::to_writer(&mut bytes, self)?;
        Ok(bytes)
    }
}

/// A whole answer, or one event of a stream.
#[derive(Deserialize)]
pub(super) struct WireReply<'a> {
    #[serde(borrow, default)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) system_fingerprint: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) object: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<WireChoice<'a>>>,
    pub(super) usage: Option<WireUsage>,
    /// Servers that fail midway report it with status 200.
    pub(super) error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct WireChoice<'a> {
    #[serde(borrow, default)]
    pub(super) delta: Option<WireSaid<'a>>,
    #[serde(borrow, default)]
    pub(super) message: Option<WireSaid<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<Text<'a>>,
}

/// What the model said, or a piece of it.
#[derive(Deserialize)]
pub(super) struct WireSaid<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<Text<'a>>,
    /// vLLM's current name for it.
    #[serde(borrow, default)]
    pub(super) reasoning: Option<Text<'a>>,
    /// Its older name, and DeepSeek's.
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<Text<'a>>,
    /// OpenAI's models refuse here, with `content` null.
    #[serde(borrow, default)]
    pub(super) refusal: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireUsage {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    pub(super) completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
pub(super) struct PromptDetails {
    pub(super) cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct CompletionDetails {
    pub(super) reasoning_tokens: Option<u64>,
}

/// A text of an answer, borrowed from the bytes unless JSON escapes occur. Some servers send content as a list of
/// parts; their texts are concatenated.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        #[derive(Deserialize)]
        struct Part {
            text: Option<String>,
        }
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of text parts")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let mut text = String::new();
                while let Some(part) = parts.next_element::<Part>()? {
                    text.push_str(part.text.as_deref().unwrap_or_default());
                }
                Ok(Text(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

/// Answer of `GET /v1/models`.
#[derive(Deserialize)]
pub(super) struct ModelList {
    pub(super) data: Vec<ServedModel>,
}

/// A model that a server lists.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServedModel {
    /// The name to ask for.
    pub id: String,
    /// What vLLM loaded under that name: a repository or a folder.
    pub root: Option<String>,
    /// The context in tokens, prompt and answer together (vLLM).
    pub max_model_len: Option<u32>,
}

/// Body of vLLM's `POST /tokenize`.
#[derive(Serialize)]
pub(super) struct TokenizeRequest<'a> {
    pub(super) model: &'a str,
    pub(super) messages: &'a [Message],
}

/// Its answer, without the tokens themselves.
#[derive(Deserialize)]
pub(super) struct TokenizeReply {
    pub(super) count: u32,
}

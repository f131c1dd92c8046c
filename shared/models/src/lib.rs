//! Models behind one trait per kind of question: [`chat`] asks for texts, [`embed`] for vectors, [`classify`] for classes.
//! OpenAI-compatible servers (vLLM first) are asked all three; Anthropic, Gemini, and two that need no network,
//! [`replay`] and [`scripted`], chat.
//!
//! Reading order: [`chat`] is the trait and what goes in and out, [`error`] what can go wrong, [`retry`]
//! repeats faults of transport and nothing else. [`openai`] is the connector that does most of the work.
//! Everything that providers share sits beside it: [`http`] sends, [`sse`] reads event streams,
//! [`deadline`] notices a stall, [`reasoning`] takes `<think>` blocks out of answers, [`secret`] guards keys.

pub mod anthropic;
pub mod chat;
pub mod classify;
pub mod deadline;
pub mod embed;
pub mod error;
pub mod gemini;
pub mod http;
pub mod openai;
pub mod reasoning;
pub mod replay;
mod resolve;
pub mod retry;
pub mod scripted;
mod secret;
pub mod sse;

pub use anthropic::{Anthropic, AnthropicConfig};
pub use chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
pub use classify::{Class, Classification, ClassifyModel, ClassifyReply, ClassifyRequest, TextPair};
pub use embed::{EmbedModel, EmbedReply, EmbedRequest, Embedding};
pub use error::{CallError, SetupError};
pub use gemini::{Gemini, GeminiConfig};
pub use http::{HttpClient, install_crypto};
pub use openai::{
    ClassifyConfig, EmbedConfig, OpenAiCompatible, OpenAiConfig, OpenAiEmbedder, PairLayout, ServedModel,
    VllmClassifier,
};
pub use replay::Replay;
pub use retry::{RetryPolicy, classify_with_retry, complete_with_retry, embed_with_retry};
pub use scripted::Scripted;
pub use secret::Secret;

//! Chat models behind one trait: OpenAI-compatible servers (vLLM first), Anthropic, Gemini, and two that
//! need no network, [`replay`] and [`scripted`].
//!
//! Reading order: [`chat`] is the trait and what goes in and out, [`error`] what can go wrong, [`retry`]
//! repeats faults of transport and nothing else. [`openai`] is the connector that does most of the work.
//! Everything that providers share sits beside it: [`http`] sends, [`sse`] reads event streams,
//! [`deadline`] notices a stall, [`reasoning`] takes `<think>` blocks out of answers, [`secret`] guards keys.

pub mod anthropic;
pub mod chat;
pub mod deadline;
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
pub use error::{CallError, SetupError};
pub use gemini::{Gemini, GeminiConfig};
pub use http::{HttpClient, install_crypto};
pub use openai::{OpenAiCompatible, OpenAiConfig, ServedModel};
pub use replay::Replay;
pub use retry::{RetryPolicy, complete_with_retry};
pub use scripted::Scripted;
pub use secret::Secret;

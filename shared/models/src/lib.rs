//! Models behind one trait, in [`chat`]. Those that do not chat, but embed or classify texts, are asked about pairs of texts in the
//! same way ([`pairs`]). OpenAI-compatible servers (vLLM first) support all three. Anthropic, Gemini, and a model without a
//! network, [`replay`], support chat.
//!
//! Reading order: [`chat`] has the trait with its request and reply, [`error`] the errors, [`retry`] retries transport
//! errors, [`progress`] shows the state of a call in flight. [`openai`] is the main connector, [`hosted`] the one for
//! Anthropic and Gemini; `docs/adding-a-model.md` says how to add one. They share
//! [`client`] (connections), [`http`] (sending), [`sse`] (event streams), [`deadline`] (stalls), [`reasoning`]
//! (markers of thoughts), `stops` (finish reasons and filters), `refusals` with `quirks` (why a call failed, in the words of all
//! servers), [`secret`] (keys) and `key_search` (where texts have them).

mod anthropic;
mod body;
pub mod chat;
pub mod classify;
pub mod client;
pub mod deadline;
pub mod embed;
pub mod error;
mod gemini;
pub mod hosted;
pub mod http;
mod key_search;
pub mod openai;
pub mod pairs;
pub mod progress;
mod quirks;
mod rates;
pub mod reasoning;
mod refusals;
pub mod replay;
mod resolve;
pub mod retry;
mod secret;
pub mod sse;
mod stops;
mod vectors;

pub use chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
pub use classify::{Class, Classification};
pub use client::{ClientOptions, HttpClient, install_crypto};
pub use embed::{EmbedReply, Embedding};
pub use error::{CallError, SetupError, blanked};
pub use hosted::Hosted;
pub use openai::{
    Learnt, OpenAiCompatible, OpenAiConfig, OpenAiEmbedder, ServedModel, TeiClassifier, VllmClassifier,
};
pub use pairs::Similarity;
pub use progress::{CallStage, FailingCall, Progress};
pub use replay::Replay;
pub use retry::{RetryPolicy, complete_with_retry};
pub use secret::Secret;
pub use vectors::KnownVectors;

//! Models and requests of these tests.

use std::time::Duration;

use domain::{Connector, DialogueKey, Message, ModelSpec, Sampling};
use models::{ChatRequest, Progress};

/// A request with a generous deadline: tests that end by a limit set a small one themselves.
pub fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest {
        messages: messages.into(),
        sampling: Sampling::default(),
        seed: Some(42),
        deadline: Duration::from_secs(60),
        key: DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 },
        round: 0,
        progress: Progress::default(),
    }
}

/// A request of one message.
pub fn question(text: &str) -> ChatRequest {
    request(vec![Message::user(text)])
}

/// A request about two texts.
pub fn pair(one: &str, other: &str) -> ChatRequest {
    question(&serde_json::json!([one, other]).to_string())
}

/// A model of a provider, at this address.
pub fn hosted(url: &str, model: &str) -> ModelSpec {
    ModelSpec { endpoint: Some(url.to_owned()), ..ModelSpec::new(model, Connector::Anthropic) }
}

//! Requests of these tests.

#![allow(dead_code, reason = "each test file uses its part")]

use std::time::Duration;

use domain::{DialogueKey, Message, Sampling};
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

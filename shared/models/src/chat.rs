//! The trait that every connector implements, with its request and reply.

use std::sync::Arc;
use std::time::Duration;

use domain::cut_text::ShortName;
use domain::{Answer, DialogueKey, FinishReason, Message, ModelProvenance, Sampling};

use crate::error::CallError;
use crate::progress::Progress;
use crate::secret::{Secret, scrub_with};

/// Maximum size of an answer, without reasoning, in bytes. No model's context holds as much. A longer text is cut
/// here with the finish reason [`ANSWER_TOO_LARGE`], so that a runaway server costs bounded memory and its answer
/// still gets a verdict.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Text of [`domain::FinishReason::Other`] for an answer cut at [`ANSWER_BYTES_MAX`].
pub const ANSWER_TOO_LARGE: &str = "answer_too_large";

/// Maximum length of an unknown finish reason, in characters.
const FINISH_REASON_CHARS_MAX: usize = 64;

/// A model that answers conversations.
///
/// One call is one attempt: connectors do not retry transport errors themselves, because each attempt belongs in the
/// record (see [`crate::retry`]). Dropping the future closes the connection, which makes servers such as vLLM stop
/// generating.
#[async_trait::async_trait]
pub trait ChatModel: Send + Sync {
    /// Makes one attempt.
    ///
    /// # Errors
    /// Any reason why there is no answer. An empty, truncated or useless answer is not an error: it is scored.
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError>;

    /// Identifies the model in records and messages.
    fn identity(&self) -> &ModelIdentity;
}

/// One question to a model. Cloning is cheap: the texts are shared.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The conversation so far, oldest first; the last message is the one to answer.
    pub messages: Arc<[Message]>,
    /// Sampling parameters.
    pub sampling: Sampling,
    /// Sampling seed, sent if the API has one; below 2^53.
    pub seed: Option<u64>,
    /// How long this call may take at most, from the request to the last token; its model may have narrower limits.
    pub deadline: Duration,
    /// The dialogue. [`crate::replay`] looks answers up by it, and it makes back-off delays reproducible.
    pub key: DialogueKey,
    /// Round of the dialogue, from 0.
    pub round: u32,
    /// The state of the dialogue's latest call, which the connector keeps up to date.
    pub progress: Progress,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ChatReply {
    /// The answer, with reasoning separated from the text that is scored.
    pub answer: Answer,
    /// The model name in the server's answer; it may differ from the one asked for.
    pub reported_model: Option<String>,
    /// The server's fingerprint of its build and configuration.
    pub system_fingerprint: Option<String>,
    /// Time from the request to the first token, if the answer was streamed.
    pub first_token: Option<Duration>,
    /// How the request was changed because the server refused it as it was, for the record.
    pub adapted: Vec<String>,
    /// The limit of tokens that was sent, where it is not the one of the configuration.
    pub max_tokens: Option<u32>,
}

impl ChatReply {
    /// The same, with the limit of tokens that was sent.
    pub(crate) fn limited(self, sampling: &Sampling, sent: u32) -> Self {
        Self { max_tokens: (sampling.max_tokens != Some(sent)).then_some(sent), ..self }
    }

    /// What a server said in answer to a question, once it is parsed and put together: the key is removed from all its
    /// texts, the finish reason shortened, and a count of tokens that cannot be is none.
    pub(crate) fn said(
        answer: Answer,
        model: Option<String>,
        fingerprint: Option<String>,
        key: Option<&Secret>,
    ) -> Self {
        let scrub = |text: String| scrub_with(key, &text).into_owned();
        let scrub_answer = |text: String| match key {
            Some(key) => key.scrub_answer(&text).into_owned(),
            None => text,
        };
        let finish_reason = answer.finish_reason.map(|reason| match reason {
            FinishReason::Other(word) => {
                FinishReason::Other(scrub(word).chars().take(FINISH_REASON_CHARS_MAX).collect())
            }
            known => known,
        });
        let answer = Answer {
            text: scrub_answer(answer.text),
            reasoning: answer.reasoning.map(scrub_answer),
            finish_reason,
            usage: answer.usage.plausible(),
            oddities: answer.oddities,
        };
        let (reported_model, system_fingerprint) = (model.map(scrub), fingerprint.map(scrub));
        Self { answer, reported_model, system_fingerprint, ..Self::text("") }
    }

    /// A reply with nothing but a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            answer: Answer::text(text),
            reported_model: None,
            system_fingerprint: None,
            first_token: None,
            adapted: Vec::new(),
            max_tokens: None,
        }
    }
}

/// Identifies a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelIdentity {
    /// The connector, such as `openai-compatible`.
    pub connector: &'static str,
    /// The model name that is sent.
    pub requested: String,
    /// Address of the model, without user, password, query or key; absent if no network is involved.
    pub endpoint: Option<String>,
}

impl ModelIdentity {
    /// The provenance that a record stores: with what a reply says, or as far as it is known before one.
    pub fn provenance(&self, reply: Option<&ChatReply>) -> ModelProvenance {
        let name = |text: &String| ShortName::from(text.as_str()).0;
        ModelProvenance {
            connector: self.connector.to_owned(),
            requested: self.requested.clone(),
            reported: reply.and_then(|reply| reply.reported_model.as_ref()).map(name),
            system_fingerprint: reply.and_then(|reply| reply.system_fingerprint.as_ref()).map(name),
            endpoint: self.endpoint.clone(),
            adapted: reply.map(|reply| reply.adapted.clone()).unwrap_or_default(),
            max_tokens: reply.and_then(|reply| reply.max_tokens),
        }
    }
}

/// Cuts `text` to at most `bytes_max` bytes at a character boundary; returns whether anything was cut.
pub(crate) fn cut_text(text: &mut String, bytes_max: usize) -> bool {
    if text.len() <= bytes_max {
        return false;
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    true
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A request for unit tests.
    pub(crate) fn request(text: &str) -> ChatRequest {
        ChatRequest {
            messages: Arc::from([Message::user(text)]),
            sampling: Sampling::default(),
            seed: Some(7),
            deadline: Duration::from_secs(60),
            key: DialogueKey { model: "m".into(), task: "t".into(), iteration: 3 },
            round: 0,
            progress: Progress::default(),
        }
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let mut text = "aé".to_owned();
        assert!(!cut_text(&mut text, 3));
        assert!(cut_text(&mut text, 2));
        assert_eq!(text, "a");
    }
}

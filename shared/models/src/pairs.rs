//! Embedders and classifiers as models that are asked about a pair of texts.
//!
//! A dialogue with one of them has a prompt and an answer like any other: the prompt is a JSON list of two texts, the
//! answer a JSON object with the cosine of their vectors or with their likeliest class. So deadlines, repeated calls,
//! budgets, breakers and records are the same for all models. The vectors themselves are not stored.

use std::sync::Arc;

use domain::{FailureCause, RetryAdvice, Usage};
use serde_json::{Value, json};

use crate::chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
use crate::embed::EmbedReply;
use crate::error::CallError;
use crate::openai::OpenAiEmbedder;
use crate::vectors::KnownVectors;

/// An embedder; answers with the cosine of the two vectors. Texts whose vectors are known are not sent again. A record counts the tokens
/// of both of its texts all the same: which dialogue comes first is chance, and no part of what a record says.
pub struct Similarity {
    pub model: OpenAiEmbedder,
    pub known: Arc<KnownVectors>,
}

/// The two texts of a prompt.
pub(crate) fn pair(request: &ChatRequest) -> Result<[String; 2], CallError> {
    let prompt = request.messages.last().map_or("", |message| message.content.as_str());
    serde_json::from_str(prompt).map_err(|error| {
        let message =
            format!("this model is asked about a JSON list of two texts, and the prompt is none: {error}");
        CallError::new(FailureCause::BadRequest, RetryAdvice::No, message)
    })
}

/// The tokens of both; unknown if they are of one.
fn sum(left: &Usage, right: &Usage) -> Usage {
    let of = |tokens: fn(&Usage) -> Option<u64>| Some(tokens(left)?.saturating_add(tokens(right)?));
    Usage {
        prompt_tokens: of(|usage| usage.prompt_tokens),
        completion_tokens: of(|usage| usage.completion_tokens),
        cached_tokens: of(|usage| usage.cached_tokens),
        reasoning_tokens: of(|usage| usage.reasoning_tokens),
    }
}

/// Wraps a value as the reply of a chat model.
pub(crate) fn said(answer: &Value, usage: Usage, reported_model: Option<String>) -> ChatReply {
    let mut reply = ChatReply { reported_model, ..ChatReply::text(answer.to_string()) };
    reply.answer.usage = usage;
    reply
}

impl Similarity {
    async fn vector(&self, text: &str, request: &ChatRequest) -> Result<EmbedReply, CallError> {
        let ModelIdentity { requested, endpoint, .. } = self.model.identity();
        let embedder = format!("{} {requested}", endpoint.as_deref().unwrap_or_default());
        self.known.of(&embedder, text, self.model.embed(text, request)).await
    }
}

#[async_trait::async_trait]
impl ChatModel for Similarity {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let [left, right] = pair(&request)?;
        let both = async {
            let left = self.vector(&left, &request).await?;
            Ok((left, self.vector(&right, &request).await?))
        };
        // Whoever else asks for the same text may take long over it; then it is asked for here, with the same deadline.
        let both = tokio::time::timeout(request.deadline.saturating_mul(2), both).await;
        let (left, right) = both.unwrap_or_else(|_| {
            let message = format!("no vectors within twice {} s", request.deadline.as_secs());
            Err(CallError::new(FailureCause::Timeout, RetryAdvice::Transient, message))
        })?;
        let cosine = left.embedding.cosine(&right.embedding);
        let cosine = cosine.ok_or_else(|| {
            let message = "the reply has no vectors of one length";
            CallError::new(FailureCause::Server, RetryAdvice::No, message)
        })?;
        let usage = sum(&left.usage, &right.usage);
        Ok(said(&json!({ "cosine": cosine }), usage, right.reported_model.or(left.reported_model)))
    }

    fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }
}

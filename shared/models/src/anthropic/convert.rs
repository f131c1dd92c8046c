//! Converts between our types and Anthropic's.

use domain::{Answer, FailureCause, FinishReason, RetryAdvice, Role, Sampling, Usage};

use super::wire::{MessagesBody, MessagesReply, OutputConfig, WireMessage};
use crate::chat::{ANSWER_BYTES_MAX, ANSWER_TOO_LARGE, ChatReply, ChatRequest, cut_text, unsupported_field};
use crate::error::CallError;
use crate::reasoning;
use crate::secret::Secret;

/// Serialises a request.
///
/// # Errors
/// A sampling field is set that the API does not have.
pub(super) fn request(model: &str, request: &ChatRequest) -> Result<Vec<u8>, CallError> {
    let sampling = &request.sampling;
    for (field, set) in [
        ("min_p", sampling.min_p.is_some()),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
        ("repetition_penalty", sampling.repetition_penalty.is_some()),
    ] {
        if set {
            return Err(unsupported_field("Anthropic", field));
        }
    }
    let system: Vec<&str> = request
        .messages
        .iter()
        .filter(|message| message.role == Role::System)
        .map(|message| message.content.as_str())
        .collect();
    let body = MessagesBody {
        model,
        max_tokens: sampling.max_tokens.unwrap_or(Sampling::MAX_TOKENS_DEFAULT),
        system: (!system.is_empty()).then(|| system.join("\n\n")),
        messages: request
            .messages
            .iter()
            .filter(|message| message.role != Role::System)
            .map(|message| WireMessage { role: message.role, content: &message.content })
            .collect(),
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        top_k: sampling.top_k,
        stop_sequences: &sampling.stop,
        output_config: sampling.reasoning_effort.as_deref().map(|effort| OutputConfig { effort }),
    };
    serde_json::to_vec(&body).map_err(|error| {
        let message = format!("the request cannot be serialised: {error}");
        CallError::new(FailureCause::BadRequest, RetryAdvice::No, message)
    })
}

/// Parses the body of a success.
///
/// # Errors
/// It is not an answer.
pub(super) fn reply(body: &[u8], key: &Secret) -> Result<ChatReply, CallError> {
    let reply: MessagesReply = serde_json::from_slice(body).map_err(|error| {
        let message = format!("the answer cannot be parsed: {error}");
        CallError::new(FailureCause::Server, RetryAdvice::Transient, key.scrub(&message))
    })?;
    let (mut text, mut thinking) = (String::new(), String::new());
    for block in &reply.content {
        text.push_str(block.text.as_deref().unwrap_or_default());
        thinking.push_str(block.thinking.as_deref().unwrap_or_default());
    }
    cut_text(&mut thinking, ANSWER_BYTES_MAX);
    let finish_reason = if cut_text(&mut text, ANSWER_BYTES_MAX) {
        Some(FinishReason::Other(ANSWER_TOO_LARGE.to_owned()))
    } else {
        reply.stop_reason.map(finish_reason)
    };
    let (text, reasoning) = reasoning::split(text, Some(thinking));
    let usage = &reply.usage;
    let prompt_parts = [usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens];
    let usage = Usage {
        prompt_tokens: usage.input_tokens.map(|_| prompt_parts.iter().flatten().sum()),
        completion_tokens: usage.output_tokens,
        cached_tokens: usage.cache_read_input_tokens,
        reasoning_tokens: None,
    };
    Ok(ChatReply {
        answer: Answer { text, reasoning, finish_reason, usage },
        reported_model: reply.model,
        system_fingerprint: None,
        first_token: None,
    })
}

fn finish_reason(word: String) -> FinishReason {
    match word.as_str() {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Other(word),
    }
}

//! Converts between our types and Anthropic's.

use domain::{Role, Usage};

use super::wire::{MessagesBody, MessagesReply, OutputConfig, WireContent, WireMessage};
use crate::chat::{ChatReply, ChatRequest};
use crate::dialect;
use crate::error::CallError;
use crate::http::{unparsable, unserialisable};
use crate::secret::Secret;
use crate::stops;

/// Serialises a request. Instructions and the first message are marked for the prompt cache: the other iterations of a
/// case and the later rounds of a dialogue begin with them. The provider caches nothing below a thousand tokens, marked
/// or not.
///
/// # Errors
/// A sampling field is set that the API does not have.
pub(super) fn request(model: &str, request: &ChatRequest) -> Result<Vec<u8>, CallError> {
    let sampling = &request.sampling;
    let lacking = [
        ("min_p", sampling.min_p.is_some()),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
        ("repetition_penalty", sampling.repetition_penalty.is_some()),
    ];
    dialect::refuse_fields("Anthropic", &lacking)?;
    let body = MessagesBody {
        model,
        max_tokens: sampling.tokens(None),
        system: dialect::instructions(request).map(WireContent::cached),
        messages: request
            .messages
            .iter()
            .filter(|message| message.role != Role::System)
            .enumerate()
            .map(|(place, message)| {
                let text = message.content.as_str();
                let content = match place {
                    0 => WireContent::cached(text),
                    _ => WireContent::Plain(text.into()),
                };
                WireMessage { role: message.role, content }
            })
            .collect(),
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        top_k: sampling.top_k,
        stop_sequences: &sampling.stop,
        output_config: sampling.reasoning_effort.as_deref().map(|effort| OutputConfig { effort }),
    };
    serde_json::to_vec(&body).map_err(unserialisable)
}

/// Parses the body of a success.
///
/// # Errors
/// It is not an answer.
pub(super) fn reply(body: &[u8], key: &Secret) -> Result<ChatReply, CallError> {
    let reply: MessagesReply = serde_json::from_slice(body).map_err(|error| unparsable(&error, Some(key)))?;
    let (mut text, mut thinking) = (String::new(), String::new());
    for block in &reply.content {
        text.push_str(block.text.as_deref().unwrap_or_default());
        thinking.push_str(block.thinking.as_deref().unwrap_or_default());
    }
    let usage = &reply.usage;
    let prompt_parts = [usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens];
    let usage = Usage {
        prompt_tokens: usage
            .input_tokens
            .map(|_| prompt_parts.into_iter().flatten().fold(0, u64::saturating_add)),
        completion_tokens: usage.output_tokens,
        cached_tokens: usage.cache_read_input_tokens,
        reasoning_tokens: None,
    };
    let answer =
        dialect::answer(text, thinking, reply.stop_reason.as_deref().map(stops::finish_reason), usage);
    Ok(ChatReply::said(answer, reply.model, None, Some(key)))
}

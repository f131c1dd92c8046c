//! Converts between our types and Google's.

use std::borrow::Cow;

use domain::{Answer, Role, Usage};

use super::wire::{
    Content, GeminiCandidate, GenerateBody, GenerateReply, GenerationConfig, TextPart, ThinkingConfig,
    UsageMetadata,
};
use crate::chat::{ChatReply, ChatRequest};
use crate::dialect;
use crate::error::CallError;
use crate::http::{unparsable, unserialisable, unusable};
use crate::secret::Secret;
use crate::stops;

/// Serialises a request.
///
/// # Errors
/// A sampling field is set that the API does not have.
pub(super) fn request(request: &ChatRequest) -> Result<Vec<u8>, CallError> {
    let sampling = &request.sampling;
    let lacking =
        [("min_p", sampling.min_p.is_some()), ("repetition_penalty", sampling.repetition_penalty.is_some())];
    dialect::refuse_fields("Gemini", &lacking)?;
    let content = |role, text| Content { role, parts: [TextPart { text }] };
    let body = GenerateBody {
        contents: request
            .messages
            .iter()
            .filter_map(|message| {
                let role = match message.role {
                    Role::System => return None,
                    Role::User => "user",
                    Role::Assistant => "model",
                };
                Some(content(Some(role), Cow::Borrowed(message.content.as_str())))
            })
            .collect(),
        system_instruction: dialect::instructions(request).map(|text| content(None, Cow::Owned(text))),
        generation_config: GenerationConfig {
            max_output_tokens: sampling.tokens(None),
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            top_k: sampling.top_k,
            presence_penalty: sampling.presence_penalty,
            frequency_penalty: sampling.frequency_penalty,
            stop_sequences: &sampling.stop,
            seed: request.seed.map(seed),
            thinking_config: sampling
                .reasoning_effort
                .as_deref()
                .map(|thinking_level| ThinkingConfig { thinking_level }),
        },
    };
    serde_json::to_vec(&body).map_err(unserialisable)
}

/// The API takes signed 32-bit seeds; the low 31 bits of ours are as random as all of it.
fn seed(seed: u64) -> i32 {
    (seed & 0x7fff_ffff) as i32
}

/// Parses the body of a success. If a filter withheld the answer, it is empty.
///
/// # Errors
/// It is not an answer.
pub(super) fn reply(body: &[u8], key: &Secret) -> Result<ChatReply, CallError> {
    let reply: GenerateReply = serde_json::from_slice(body).map_err(|error| unparsable(&error, Some(key)))?;
    let blocked = reply.prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some());
    let answer = match reply.candidates.into_iter().next() {
        Some(candidate) => answer(candidate, usage(&reply.usage_metadata)),
        None if blocked => Answer { usage: usage(&reply.usage_metadata), ..stops::withheld() },
        None => return Err(unusable("the answer has no candidates").in_vain(usage(&reply.usage_metadata))),
    };
    Ok(ChatReply::said(answer, reply.model_version, None, Some(key)))
}

fn answer(candidate: GeminiCandidate, usage: Usage) -> Answer {
    let (mut text, mut thoughts) = (String::new(), String::new());
    for part in candidate.content.into_iter().flat_map(|content| content.parts) {
        if part.thought { &mut thoughts } else { &mut text }.push_str(&part.text);
    }
    dialect::answer(text, thoughts, candidate.finish_reason.as_deref().map(stops::finish_reason), usage)
}

fn usage(wire: &UsageMetadata) -> Usage {
    Usage {
        prompt_tokens: wire.prompt_token_count,
        // Google counts thoughts separately from the answer.
        completion_tokens: wire
            .candidates_token_count
            .or(wire.thoughts_token_count.map(|_| 0))
            .map(|tokens| tokens.saturating_add(wire.thoughts_token_count.unwrap_or(0))),
        cached_tokens: wire.cached_content_token_count,
        reasoning_tokens: wire.thoughts_token_count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_fit_into_31_bits() {
        assert_eq!(seed(u64::MAX), i32::MAX);
        assert_eq!(seed(42), 42);
    }
}

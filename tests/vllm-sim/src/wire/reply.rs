//! Replies in one piece.

use serde::Serialize;

use super::{NULL, Null, SYSTEM_FINGERPRINT};

/// Token counts.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct SimUsage {
    pub(crate) prompt_tokens: u32,
    pub(crate) total_tokens: u32,
    pub(crate) completion_tokens: u32,
    pub(crate) prompt_tokens_details: Option<CachedTokens>,
    completion_tokens_details: Null,
}

/// How much of the prompt the prefix cache had.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct CachedTokens {
    pub(crate) cached_tokens: u32,
}

impl SimUsage {
    /// `cached_tokens` is reported when it is given.
    pub(crate) fn new(prompt_tokens: u32, completion_tokens: u32, cached_tokens: Option<u32>) -> Self {
        Self {
            prompt_tokens,
            total_tokens: prompt_tokens.saturating_add(completion_tokens),
            completion_tokens,
            prompt_tokens_details: cached_tokens.map(|cached_tokens| CachedTokens { cached_tokens }),
            completion_tokens_details: NULL,
        }
    }
}

/// The text of a reply, by reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimText<'a> {
    pub(crate) id: &'a str,
    pub(crate) created: u64,
    pub(crate) model: &'a str,
    /// Null when absent.
    pub(crate) content: Option<&'a str>,
    pub(crate) reasoning: Option<&'a str>,
    pub(crate) finish_reason: &'a str,
    /// The stop string that ended the answer.
    pub(crate) stop_reason: Option<&'a str>,
    pub(crate) usage: SimUsage,
}

#[derive(Serialize)]
struct Chat<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [ChatChoice<'a>; 1],
    service_tier: Null,
    system_fingerprint: &'static str,
    usage: SimUsage,
    prompt_logprobs: Null,
    prompt_token_ids: Null,
    prompt_text: Null,
    kv_transfer_params: Null,
    ec_transfer_params: Null,
    metrics: Null,
}

#[derive(Serialize)]
struct ChatChoice<'a> {
    index: u32,
    message: ChatMessage<'a>,
    logprobs: Null,
    finish_reason: &'a str,
    stop_reason: Option<&'a str>,
    token_ids: Null,
    routed_experts: Null,
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Null,
    annotations: Null,
    audio: Null,
    function_call: Null,
    reasoning: Option<&'a str>,
}

#[derive(Serialize)]
struct Completion<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [CompletionChoice<'a>; 1],
    service_tier: Null,
    system_fingerprint: &'static str,
    usage: SimUsage,
    kv_transfer_params: Null,
    ec_transfer_params: Null,
    metrics: Null,
}

#[derive(Serialize)]
struct CompletionChoice<'a> {
    index: u32,
    text: &'a str,
    logprobs: Null,
    finish_reason: &'a str,
    stop_reason: Option<&'a str>,
    token_ids: Null,
    prompt_logprobs: Null,
    prompt_token_ids: Null,
    routed_experts: Null,
}

impl SimText<'_> {
    /// The body of a chat completion.
    pub(crate) fn chat(&self) -> Vec<u8> {
        let message = ChatMessage {
            role: "assistant",
            content: self.content,
            refusal: NULL,
            annotations: NULL,
            audio: NULL,
            function_call: NULL,
            reasoning: self.reasoning,
        };
        let choice = ChatChoice {
            index: 0,
            message,
            logprobs: NULL,
            finish_reason: self.finish_reason,
            stop_reason: self.stop_reason,
            token_ids: NULL,
            routed_experts: NULL,
        };
        json(&Chat {
            id: self.id,
            object: "chat.completion",
            created: self.created,
            model: self.model,
            choices: [choice],
            service_tier: NULL,
            system_fingerprint: SYSTEM_FINGERPRINT,
            usage: self.usage,
            prompt_logprobs: NULL,
            prompt_token_ids: NULL,
            prompt_text: NULL,
            kv_transfer_params: NULL,
            ec_transfer_params: NULL,
            metrics: NULL,
        })
    }

    /// The body of a completion.
    pub(crate) fn completion(&self) -> Vec<u8> {
        let choice = CompletionChoice {
            index: 0,
            text: self.content.unwrap_or_default(),
            logprobs: NULL,
            finish_reason: self.finish_reason,
            stop_reason: self.stop_reason,
            token_ids: NULL,
            prompt_logprobs: NULL,
            prompt_token_ids: NULL,
            routed_experts: NULL,
        };
        json(&Completion {
            id: self.id,
            object: "text_completion",
            created: self.created,
            model: self.model,
            choices: [choice],
            service_tier: NULL,
            system_fingerprint: SYSTEM_FINGERPRINT,
            usage: self.usage,
            kv_transfer_params: NULL,
            ec_transfer_params: NULL,
            metrics: NULL,
        })
    }
}

/// Serialises; the types here have text keys only and cannot fail.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

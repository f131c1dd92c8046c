//! Anthropic's Messages API (version 2023-06-01).

use domain::{Connector, Role, Usage};
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::chat::ChatRequest;
use crate::hosted::{HostedReply, ProviderDialect, instructions, word};
use crate::stops;

const API_VERSION: &str = "2023-06-01";

pub(crate) const DIALECT: ProviderDialect = ProviderDialect {
    connector: Connector::Anthropic,
    name: "Anthropic",
    headers: |key| {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", key.header("")?);
        headers.insert("anthropic-version", HeaderValue::from_static(API_VERSION));
        Ok(headers)
    },
    path: |_| "v1/messages".to_owned(),
    lacks: &["min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"],
    request,
    reply,
};

/// Instructions and the first message are marked for the prompt cache: the other iterations of a case and the later rounds
/// of a dialogue begin with them. The provider caches nothing below a thousand tokens, marked or not.
fn request(model: &str, request: &ChatRequest) -> Value {
    let sampling = &request.sampling;
    let said = request.messages.iter().filter(|message| message.role != Role::System).enumerate();
    let messages = said.map(|(place, message)| {
        let text = message.content.as_str();
        let content = if place == 0 { cached(text) } else { text.into() };
        json!({ "role": message.role, "content": content })
    });
    json!({
        "model": model,
        "max_tokens": sampling.tokens(None),
        // There is no system role; instructions have a field of their own.
        "system": instructions(request).map(|text| cached(&text)),
        "messages": messages.collect::<Vec<_>>(),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "stop_sequences": sampling.stop,
        "output_config": sampling.reasoning_effort.as_ref().map(|effort| json!({ "effort": effort })),
    })
}

/// A text that other requests begin with, too: the provider keeps everything up to its end in its prompt cache for some
/// minutes. Of an empty one nothing can be kept.
fn cached(text: &str) -> Value {
    if text.is_empty() {
        return text.into();
    }
    json!([{ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } }])
}

fn reply(body: &Value) -> Result<HostedReply, (String, Usage)> {
    let tokens = |name| body["usage"][name].as_u64();
    let cached_tokens = tokens("cache_read_input_tokens");
    // Prompt tokens outside the prompt cache come first.
    let prompt = [tokens("input_tokens"), cached_tokens, tokens("cache_creation_input_tokens")];
    let usage = Usage {
        prompt_tokens: prompt[0].map(|_| prompt.into_iter().flatten().fold(0, u64::saturating_add)),
        completion_tokens: tokens("output_tokens"),
        cached_tokens,
        reasoning_tokens: None,
    };
    let Some(content) = body["content"].as_array() else {
        return Err((format!("the answer has no list of contents: {body}"), usage));
    };
    // Kinds of blocks that we never request, such as tool use, have neither.
    let all = |name| content.iter().filter_map(|block| word(block, name)).collect::<String>();
    Ok(HostedReply {
        text: all("text"),
        thoughts: all("thinking"),
        finish_reason: word(body, "stop_reason").as_deref().map(stops::finish_reason),
        usage,
        model: word(body, "model"),
    })
}

//! Google's Gemini API (`generateContent`, v1beta).

use domain::{Connector, FinishReason, Role, Usage};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::chat::ChatRequest;
use crate::hosted::{HostedReply, ProviderDialect, instructions, word};
use crate::stops;

pub(crate) const DIALECT: ProviderDialect = ProviderDialect {
    connector: Connector::Gemini,
    name: "Gemini",
    headers: |key| {
        let mut headers = HeaderMap::new();
        // The API also accepts the key in the URL, where it would appear in logs.
        headers.insert("x-goog-api-key", key.header("")?);
        Ok(headers)
    },
    path: |model| format!("v1beta/models/{}:generateContent", model.strip_prefix("models/").unwrap_or(model)),
    lacks: &["min_p", "repetition_penalty"],
    request: |_, asked| request(asked),
    reply,
};

fn request(request: &ChatRequest) -> Value {
    let sampling = &request.sampling;
    let parts = |text: &str| json!([{ "text": text }]);
    let contents = request.messages.iter().filter_map(|message| {
        let role = match message.role {
            Role::System => return None,
            Role::User => "user",
            Role::Assistant => "model",
        };
        Some(json!({ "role": role, "parts": parts(&message.content) }))
    });
    json!({
        "contents": contents.collect::<Vec<_>>(),
        // There is no system role; instructions have a field of their own.
        "systemInstruction": instructions(request).map(|text| json!({ "parts": parts(&text) })),
        "generationConfig": {
            "maxOutputTokens": sampling.tokens(None),
            "temperature": sampling.temperature,
            "topP": sampling.top_p,
            "topK": sampling.top_k,
            "presencePenalty": sampling.presence_penalty,
            "frequencyPenalty": sampling.frequency_penalty,
            "stopSequences": sampling.stop,
            // The API takes signed 32-bit seeds; the low 31 bits of ours are as random as all of it.
            "seed": request.seed.map(|seed| seed & 0x7fff_ffff),
            "thinkingConfig": sampling.reasoning_effort.as_ref().map(|level| json!({ "thinkingLevel": level })),
        },
    })
}

/// If a filter withheld the answer, it is empty.
fn reply(body: &Value) -> Result<HostedReply, (String, Usage)> {
    let usage = usage(&body["usageMetadata"]);
    let candidate = body.get("candidates").and_then(|candidates| candidates.get(0));
    let is_blocked = body["promptFeedback"]["blockReason"].is_string();
    let finish_reason = match candidate {
        Some(candidate) => word(candidate, "finishReason").as_deref().map(stops::finish_reason),
        None if is_blocked => Some(FinishReason::ContentFilter),
        None => return Err((format!("the answer has no candidates: {body}"), usage)),
    };
    let (mut text, mut thoughts) = (String::new(), String::new());
    let parts = candidate.and_then(|candidate| candidate["content"]["parts"].as_array());
    for part in parts.into_iter().flatten() {
        // A summary of the model's thoughts, or a part of its answer.
        let is_thought = part["thought"].as_bool().unwrap_or_default();
        if is_thought { &mut thoughts } else { &mut text }
            .push_str(part["text"].as_str().unwrap_or_default());
    }
    Ok(HostedReply { text, thoughts, finish_reason, usage, model: word(body, "modelVersion") })
}

fn usage(told: &Value) -> Usage {
    let tokens = |name| told[name].as_u64();
    let thoughts = tokens("thoughtsTokenCount");
    Usage {
        prompt_tokens: tokens("promptTokenCount"),
        // Google counts thoughts separately from the answer.
        completion_tokens: tokens("candidatesTokenCount")
            .or(thoughts.map(|_| 0))
            .map(|tokens| tokens.saturating_add(thoughts.unwrap_or(0))),
        cached_tokens: tokens("cachedContentTokenCount"),
        reasoning_tokens: thoughts,
    }
}

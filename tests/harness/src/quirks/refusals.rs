//! The rows of what real servers refuse, in whatever words and with whatever status.

use domain::FailureCause;
use serde_json::{Value, json};

use super::{MODEL, Quirk, QuirkEnd, ROW, delta, good, refused, typed};
use crate::canned_server::{CannedAnswer, StreamEnd, sse};

pub(super) const REFUSALS: &[Quirk] = &[
    Quirk {
        name: "fields that are not known, one after the other (Mistral, strict servers)",
        answers: || {
            let forbidden = |name: &str| {
                let detail = json!([{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": 42}]);
                CannedAnswer::json(
                    422,
                    &json!({"object": "error", "message": {"detail": detail}}).to_string(),
                )
            };
            vec![forbidden("seed"), forbidden("stream_options"), good()]
        },
        calls: 3,
        wants: |body| body.get("seed").is_none() && body.get("stream_options").is_none(),
        noted: &["without seed", "without stream_options"],
        ..ROW
    },
    Quirk {
        name: "a seed of more than 32 bits",
        answers: || vec![refused(400, "Invalid value at 'seed' (TYPE_INT32), 5368709120"), good()],
        calls: 2,
        wants: |body| body["seed"].as_u64().is_some_and(|seed| seed < 1 << 31),
        noted: &["seed in 31 bits"],
        ..ROW
    },
    Quirk {
        name: "a seed of more than 32 bits, without a word (cyllama)",
        answers: || {
            let cut = || CannedAnswer::stream(vec![sse(&delta("", &Value::Null))], StreamEnd::Cut);
            vec![cut(), cut(), good()]
        },
        calls: 3,
        wants: |body| body["seed"].as_u64().is_some_and(|seed| seed < 1 << 31),
        noted: &["seed in 31 bits"],
        ..ROW
    },
    Quirk {
        name: "any seed, however small",
        answers: || {
            let refusal = || refused(400, "seed is out of range");
            vec![refusal(), refusal(), good()]
        },
        calls: 3,
        wants: |body| body.get("seed").is_none(),
        noted: &["without seed"],
        ..ROW
    },
    Quirk {
        name: "a seed, as a fault of the server (servers in Python)",
        answers: || {
            let refusal = "generate() got an unexpected keyword argument 'seed'";
            vec![CannedAnswer::json(500, &json!({"detail": refusal}).to_string()), good()]
        },
        calls: 2,
        wants: |body| body.get("seed").is_none(),
        noted: &["without seed"],
        ..ROW
    },
    Quirk {
        name: "a seed of more than 32 bits, as a fault of the server",
        answers: || vec![refused(500, "Seed must be between 0 and 2**32 - 1"), good()],
        calls: 2,
        wants: |body| body["seed"].as_u64().is_some_and(|seed| seed < 1 << 31),
        noted: &["seed in 31 bits"],
        ..ROW
    },
    Quirk {
        name: "streams, to those who have not shown who they are (OpenAI)",
        answers: || {
            let error = json!({"error": {"message": "Your organization must be verified to stream this model.",
                "type": "invalid_request_error", "param": "stream", "code": "unsupported_value"}});
            vec![CannedAnswer::json(400, &error.to_string()), good()]
        },
        calls: 2,
        wants: |body| body["stream"] == false && body.get("stream_options").is_none(),
        noted: &["without stream"],
        ..ROW
    },
    Quirk {
        name: "a field, in the words of the provider behind a gateway (OpenRouter)",
        answers: || {
            let detail = json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]});
            let error = json!({"error": {"message": "Provider returned error", "code": 400,
                "metadata": {"raw": detail.to_string(), "provider_name": "Mistral"}}});
            vec![CannedAnswer::json(400, &error.to_string()), good()]
        },
        calls: 2,
        wants: |body| body.get("seed").is_none(),
        noted: &["without seed"],
        ..ROW
    },
    Quirk {
        name: "a system message, in the words of the provider behind a gateway (OpenRouter)",
        answers: || {
            let raw = json!({"error": {"code": 400, "message": "Developer instruction is not enabled for models/gemma-3-12b-it"}});
            let error = json!({"error": {"message": "Provider returned error", "code": 400,
                "metadata": {"raw": raw.to_string(), "provider_name": "Google AI Studio"}}});
            vec![CannedAnswer::json(400, &error.to_string()), good()]
        },
        calls: 2,
        wants: |body| body["messages"].as_array().is_some_and(|messages| messages.len() == 1),
        noted: &["system message in the user's"],
        ..ROW
    },
    Quirk {
        name: "the old name of the token limit (OpenAI)",
        answers: || {
            vec![
                refused(
                    400,
                    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                ),
                good(),
            ]
        },
        calls: 2,
        wants: |body| body.get("max_tokens").is_none() && body["max_completion_tokens"] == 4096,
        noted: &["max_completion_tokens for max_tokens"],
        ..ROW
    },
    Quirk {
        name: "more tokens than the model generates (DashScope)",
        answers: || vec![refused(400, "Range of max_tokens should be [1, 2048]"), good()],
        calls: 2,
        wants: |body| body["max_tokens"] == 2048,
        noted: &["fewer max_tokens"],
        ..ROW
    },
    Quirk {
        name: "a system message, as a fault of the server (llama.cpp, SGLang)",
        answers: || vec![refused(500, "Error: Jinja Exception: System role not supported"), good()],
        calls: 2,
        wants: |body| body["messages"].as_array().is_some_and(|messages| messages.len() == 1),
        noted: &["system message in the user's"],
        ..ROW
    },
    Quirk {
        name: "prompt and answer together (TGI)",
        answers: || {
            vec![
                CannedAnswer::json(
                    422,
                    r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 1200 `inputs` tokens and 4096 `max_new_tokens`","error_type":"validation"}"#,
                ),
                good(),
            ]
        },
        calls: 2,
        wants: |body| body["max_tokens"] == 2896,
        ..ROW
    },
    Quirk {
        name: "a prompt that is too long, within a stream (LM Studio)",
        answers: || {
            let error = json!({"error": "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"});
            vec![typed("text/event-stream", &format!("event: error\ndata: {error}\n\n"))]
        },
        end: QuirkEnd::Failed(FailureCause::ContextExceeded),
        ..ROW
    },
    Quirk {
        name: "a prompt that is too long (SGLang)",
        answers: || {
            vec![refused(
                400,
                "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
            )]
        },
        end: QuirkEnd::Failed(FailureCause::ContextExceeded),
        ..ROW
    },
    Quirk {
        name: "a prompt that is too long (Ollama)",
        answers: || vec![refused(400, "the input length exceeds the context length")],
        end: QuirkEnd::Failed(FailureCause::ContextExceeded),
        ..ROW
    },
    Quirk {
        name: "what a person has to mend",
        answers: || vec![refused(400, "messages: Field required")],
        end: QuirkEnd::Failed(FailureCause::BadRequest),
        ..ROW
    },
    // Filters: one outcome, whatever the form.
    Quirk {
        name: "a filter of prompts (Azure)",
        answers: || {
            let error = json!({"error": {"code": "content_filter", "status": 400, "param": "prompt",
                "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
                "innererror": {"code": "ResponsibleAIPolicyViolation"}}});
            vec![CannedAnswer::json(400, &error.to_string())]
        },
        end: QuirkEnd::Filtered,
        ..ROW
    },
    Quirk {
        name: "a filter of answers that leaves nothing but its reason (Azure)",
        answers: || {
            let choice = json!({"index": 0, "finish_reason": "content_filter", "content_filter_results": {}});
            vec![CannedAnswer::json(200, &json!({"model": MODEL, "choices": [choice]}).to_string())]
        },
        end: QuirkEnd::Filtered,
        ..ROW
    },
    Quirk {
        name: "a filter in the last piece of a stream",
        answers: || {
            let reason = json!("content_filter: PROHIBITED_CONTENT");
            vec![CannedAnswer::events(&[&delta("Par", &Value::Null), &delta("", &reason), "[DONE]"])]
        },
        end: QuirkEnd::Filtered,
        ..ROW
    },
    Quirk {
        name: "a filter that ends a stream by an error (LiteLLM)",
        answers: || {
            let error = json!({"error": {"message": "litellm.ContentPolicyViolationError", "code": "400"}});
            vec![CannedAnswer::events(&[&delta("Par", &Value::Null), &error.to_string()])]
        },
        end: QuirkEnd::Filtered,
        ..ROW
    },
    Quirk {
        name: "a filter that refuses like a wrong key (OpenRouter)",
        answers: || {
            vec![refused(403, "tiny requires moderation on Azure. Your input was flagged for violence.")]
        },
        end: QuirkEnd::Filtered,
        ..ROW
    },
    // Rates.
    Quirk {
        name: "a limit per minute that is called a quota, in a list (Google)",
        answers: || {
            let details = json!([{"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}, {"retryDelay": "2.5s"}]);
            let error = json!([{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing details.", "details": details}}]);
            vec![CannedAnswer::json(429, &error.to_string()), good()]
        },
        calls: 2,
        ..ROW
    },
    Quirk {
        name: "a budget that is used up (LiteLLM)",
        answers: || vec![refused(400, "Budget has been exceeded! Current cost: 10.0, Max budget: 5.0")],
        end: QuirkEnd::Failed(FailureCause::QuotaExhausted),
        ..ROW
    },
    Quirk {
        name: "a limit per day (OpenRouter)",
        answers: || {
            vec![refused(
                429,
                "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 requests per day",
            )]
        },
        end: QuirkEnd::Failed(FailureCause::QuotaExhausted),
        ..ROW
    },
    Quirk {
        name: "a limit that is reset in hours, by a header alone",
        answers: || vec![refused(429, "Too many requests").header("x-ratelimit-reset-requests", "7h12m0s")],
        end: QuirkEnd::Failed(FailureCause::QuotaExhausted),
        ..ROW
    },
    Quirk {
        name: "when to come again is a date (Azure)",
        answers: || {
            let date = "Fri, 15 Jan 2027 08:00:00 GMT";
            vec![refused(429, "Too many requests").header("retry-after", date).header("date", date), good()]
        },
        calls: 2,
        ..ROW
    },
];

//! Classifies refusals.
//!
//! Servers with this API roughly agree on statuses, and on little else. Codes and parameters are matched first, texts
//! second. The texts are those of vLLM 0.2 to 0.32, OpenAI and llama.cpp; the table in the tests lists them.

use std::time::Duration;

use domain::{FailureCause, RetryAdvice};
use serde_json::Value;

use super::context;
use crate::error::CallError;

/// A failed call, and the correction that may fix it.
#[derive(Debug)]
pub(super) struct Rejected {
    pub(super) error: CallError,
    pub(super) remedy: Option<Remedy>,
}

/// A correction of the request that the refusal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The model has no system role, or requires strict alternation.
    FoldRoles,
    /// The token limit is called `max_completion_tokens`.
    CompletionTokens,
    /// Prompt and answer together exceed the context; the prompt alone does not, as far as known.
    FewerTokens {
        /// The context in tokens.
        context: u32,
        /// The prompt in tokens, if the server said so exactly.
        prompt: Option<u32>,
    },
}

impl From<CallError> for Rejected {
    fn from(error: CallError) -> Self {
        Self { error, remedy: None }
    }
}

/// The parts of an error body, whatever its shape.
#[derive(Debug, Default)]
struct ErrorBody {
    message: String,
    kind: String,
    param: String,
    code: String,
}

impl ErrorBody {
    /// Parses `{"error": {…}}`, `{"error": "…"}`, `{"detail": …}`, `{"object": "error", "message": …}`; anything else
    /// is the message itself.
    fn parse(text: &str) -> Self {
        let Ok(Value::Object(body)) = serde_json::from_str(text) else {
            return Self { message: text.to_owned(), ..Self::default() };
        };
        match (body.get("error"), body.get("detail")) {
            (Some(Value::Object(error)), _) => Self::from_fields(error, text),
            (Some(Value::String(error)), _) => {
                Self { message: error.clone(), ..Self::from_fields(&body, text) }
            }
            (_, Some(Value::String(detail))) => Self { message: detail.clone(), ..Self::default() },
            (_, Some(detail)) => Self { message: detail.to_string(), ..Self::default() },
            _ => Self::from_fields(&body, text),
        }
    }

    fn from_fields(fields: &serde_json::Map<String, Value>, text: &str) -> Self {
        let word = |name| match fields.get(name) {
            Some(Value::String(word)) => word.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let message = match word("message") {
            message if message.is_empty() => text.to_owned(),
            message => message,
        };
        Self { message, kind: word("type"), param: word("param"), code: word("code") }
    }
}

/// Classifies a response with an error status. `text` is its body, without keys.
pub(super) fn classify(status: u16, retry_after: Option<Duration>, text: &str) -> Rejected {
    classify_body(status, retry_after, &ErrorBody::parse(text))
}

/// The same for an error with status 200, for example in a stream: the body's code is the status.
pub(super) fn classify_within_success(text: &str) -> Rejected {
    let body = ErrorBody::parse(text);
    let status = body.code.parse().ok().filter(|status| (400..600).contains(status)).unwrap_or(500);
    classify_body(status, None, &body)
}

fn classify_body(status: u16, retry_after: Option<Duration>, body: &ErrorBody) -> Rejected {
    let (cause, retry, remedy) = judge(status, retry_after, body);
    Rejected { error: CallError::new(cause, retry, &body.message).with_status(status), remedy }
}

fn judge(
    status: u16,
    retry_after: Option<Duration>,
    body: &ErrorBody,
) -> (FailureCause, RetryAdvice, Option<Remedy>) {
    let text = body.message.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let busy = RetryAdvice::RateLimited { after: retry_after };
    let transient = RetryAdvice::Transient;
    let final_ = |cause| (cause, RetryAdvice::No, None);

    if matches!(status, 401 | 403) {
        return final_(FailureCause::Unauthorized);
    }
    if status == 402 || body.code == "insufficient_quota" || body.kind == "insufficient_quota" || says(QUOTA)
    {
        return final_(FailureCause::QuotaExhausted);
    }
    if body.code == "context_length_exceeded"
        || body.kind == "exceed_context_size_error"
        || body.param == "input_tokens"
        || says(CONTEXT)
    {
        let remedy = match context::numbers(&body.message) {
            // vLLM did not even count the tokens: the text is too long whatever the token limit of the answer.
            _ if body.param == "input_text" => None,
            Some((context, prompt)) if prompt.is_none_or(|prompt| prompt < context) => {
                Some(Remedy::FewerTokens { context, prompt })
            }
            _ => None,
        };
        // If the prompt is not to blame, our limit was wrong.
        let cause = if body.param == "max_tokens" && says(&["max_model_len"]) {
            FailureCause::BadRequest
        } else {
            FailureCause::ContextExceeded
        };
        return (cause, RetryAdvice::No, remedy);
    }
    match status {
        429 if says(&["overloaded", "busy", "queue"]) => (FailureCause::Overloaded, busy, None),
        429 => (FailureCause::RateLimited, busy, None),
        503 | 529 => (FailureCause::Overloaded, busy, None),
        408 | 504 => (FailureCause::Timeout, transient, None),
        501 | 505 => final_(FailureCause::Server),
        // A draining vLLM answers 500 "cannot schedule new futures after shutdown"; a retry reaches another server.
        409 | 500.. => (FailureCause::Server, transient, None),
        404 if body.param == "model" || body.code == "model_not_found" || says(&["model"]) => {
            final_(FailureCause::ModelNotFound)
        }
        400 if body.code == "model_not_found" || says(&["invalid model name"]) => {
            final_(FailureCause::ModelNotFound)
        }
        400 | 422 if says(ROLES) => (FailureCause::BadRequest, RetryAdvice::No, Some(Remedy::FoldRoles)),
        400 if text.contains("max_completion_tokens") && says(&["unsupported", "not supported"]) => {
            (FailureCause::BadRequest, RetryAdvice::No, Some(Remedy::CompletionTokens))
        }
        _ => final_(FailureCause::BadRequest),
    }
}

/// Texts about an account without money, in lower case.
const QUOTA: &[&str] = &[
    "exceeded your current quota",
    "insufficient balance",
    "insufficient_quota",
    "insufficient credits",
    "billing hard limit",
    "quota exhausted",
    "credit balance is too low",
];

/// Texts about a conversation that is too long, in lower case.
const CONTEXT: &[&str] = &[
    "maximum context length",
    "context length is only",
    "maximum model length",
    "max_model_len",
    "exceeds the available context size",
    "exceed context window",
    "exceeds the context window",
    "but the prompt contains",
];

/// Texts of chat templates about roles, in lower case.
const ROLES: &[&str] = &[
    "conversation roles must alternate",
    "roles must alternate",
    "only user and assistant roles are supported",
    "after the optional system message",
    "system role not supported",
    "system role is not supported",
];

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: RetryAdvice = RetryAdvice::RateLimited { after: None };

    /// Status, body, and what they mean.
    type Case = (u16, &'static str, FailureCause, RetryAdvice, Option<Remedy>);

    const CASES: &[Case] = &[
        // The shapes.
        (401, r#"{"error":"Unauthorized"}"#, FailureCause::Unauthorized, RetryAdvice::No, None),
        (404, r#"{"detail":"Not Found"}"#, FailureCause::BadRequest, RetryAdvice::No, None),
        (405, r#"{"detail":"Method Not Allowed"}"#, FailureCause::BadRequest, RetryAdvice::No, None),
        (
            422,
            r#"{"detail":[{"loc":["body","messages"],"msg":"field required"}]}"#,
            FailureCause::BadRequest,
            RetryAdvice::No,
            None,
        ),
        (
            400,
            r#"{"object":"error","message":"top_p must be in (0, 1]","type":"BadRequestError","param":null,"code":400}"#,
            FailureCause::BadRequest,
            RetryAdvice::No,
            None,
        ),
        (502, "<html><h1>502 Bad Gateway</h1></html>", FailureCause::Server, RetryAdvice::Transient, None),
        (500, "", FailureCause::Server, RetryAdvice::Transient, None),
        // A full server, a strict one, a poor account.
        (
            503,
            r#"{"error":{"message":"The engine is currently busy and cannot accept new requests.","type":"Service Unavailable","param":null,"code":503}}"#,
            FailureCause::Overloaded,
            BUSY,
            None,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached for requests","type":"requests","code":"rate_limit_exceeded"}}"#,
            FailureCause::RateLimited,
            BUSY,
            None,
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
            FailureCause::QuotaExhausted,
            RetryAdvice::No,
            None,
        ),
        (
            402,
            r#"{"error":{"message":"Insufficient Balance"}}"#,
            FailureCause::QuotaExhausted,
            RetryAdvice::No,
            None,
        ),
        (
            500,
            r#"{"error":{"message":"cannot schedule new futures after shutdown","type":"InternalServerError","param":null,"code":500}}"#,
            FailureCause::Server,
            RetryAdvice::Transient,
            None,
        ),
        (504, "upstream request timeout", FailureCause::Timeout, RetryAdvice::Transient, None),
        // Models.
        (
            404,
            r#"{"error":{"message":"The model `nope` does not exist. Valid aliases: tiny.","type":"NotFoundError","param":"model","code":404}}"#,
            FailureCause::ModelNotFound,
            RetryAdvice::No,
            None,
        ),
        // Requests.
        (
            400,
            r#"{"error":{"message":"temperature must be non-negative, got -1.0.","type":"BadRequestError","param":"temperature","code":400}}"#,
            FailureCause::BadRequest,
            RetryAdvice::No,
            None,
        ),
        (
            400,
            r#"{"error":{"message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError","code":400}}"#,
            FailureCause::BadRequest,
            RetryAdvice::No,
            Some(Remedy::FoldRoles),
        ),
        (
            400,
            r#"{"error":{"message":"Only user and assistant roles are supported!","type":"BadRequestError","code":400}}"#,
            FailureCause::BadRequest,
            RetryAdvice::No,
            Some(Remedy::FoldRoles),
        ),
        (
            400,
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
            FailureCause::BadRequest,
            RetryAdvice::No,
            Some(Remedy::CompletionTokens),
        ),
        // Contexts.
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens, which exceeds this limit even without any output tokens.","type":"BadRequestError","param":"input_tokens","code":400}}"#,
            FailureCause::ContextExceeded,
            RetryAdvice::No,
            None,
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 512 tokens. However, you requested 4532 tokens (4528 in the messages, 4 in the completion).","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            FailureCause::ContextExceeded,
            RetryAdvice::No,
            None,
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 4500 tokens (500 in the messages, 4000 in the completion).","type":"BadRequestError","code":400}}"#,
            FailureCause::ContextExceeded,
            RetryAdvice::No,
            Some(Remedy::FewerTokens { context: 4096, prompt: Some(500) }),
        ),
        (
            400,
            r#"{"error":{"message":"You passed 900 input tokens and requested 200 output tokens. However, the model's context length is only 1024 tokens.","param":"input_tokens","code":400}}"#,
            FailureCause::ContextExceeded,
            RetryAdvice::No,
            Some(Remedy::FewerTokens { context: 1024, prompt: Some(900) }),
        ),
        (
            400,
            r#"{"error":{"message":"max_tokens=99999 cannot be greater than max_model_len=1024. Please request fewer output tokens.","type":"BadRequestError","param":"max_tokens","code":400}}"#,
            FailureCause::BadRequest,
            RetryAdvice::No,
            Some(Remedy::FewerTokens { context: 1024, prompt: None }),
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 514 tokens. However, your prompt contains 6000 characters (more than 3598 characters, which is the upper bound for 514 input tokens). Please reduce the length of the input prompt. (parameter=input_text, value=6000)","type":"BadRequestError","param":"input_text","code":400}}"#,
            FailureCause::ContextExceeded,
            RetryAdvice::No,
            None,
        ),
        (
            500,
            "The decoder prompt (length 700) is longer than the maximum model length of 512.",
            FailureCause::ContextExceeded,
            RetryAdvice::No,
            None,
        ),
        (
            400,
            r#"{"error":{"message":"This model supports 512 tokens, but the prompt contains 700 input tokens","code":400}}"#,
            FailureCause::ContextExceeded,
            RetryAdvice::No,
            None,
        ),
    ];

    #[test]
    fn every_known_refusal_is_understood() {
        for (status, body, cause, retry, remedy) in CASES {
            let rejected = classify(*status, None, body);
            let got = (rejected.error.cause, rejected.error.retry, rejected.remedy);
            assert_eq!(got, (*cause, *retry, *remedy), "{status} {body}");
            assert_eq!(rejected.error.status, Some(*status));
            assert!(!rejected.error.in_words().is_empty());
        }
    }

    #[test]
    fn the_message_is_the_servers_own() {
        assert_eq!(classify(401, None, r#"{"error":"Unauthorized"}"#).error.message, "Unauthorized");
        assert_eq!(
            classify(405, None, r#"{"detail":"Method Not Allowed"}"#).error.message,
            "Method Not Allowed"
        );
        assert_eq!(classify(400, None, r#"{"error":{"message":"why"}}"#).error.message, "why");
        assert_eq!(classify(500, None, "").error.in_words(), "HTTP 500, without a message");
    }

    #[test]
    fn the_servers_delay_is_kept() {
        let after = Some(Duration::from_secs(7));
        for status in [429, 503] {
            assert_eq!(classify(status, after, "{}").error.retry, RetryAdvice::RateLimited { after });
        }
    }

    #[test]
    fn an_error_within_a_stream_carries_its_own_status() {
        let busy = classify_within_success(r#"{"error":{"message":"busy","code":503}}"#);
        assert_eq!((busy.error.cause, busy.error.status), (FailureCause::Overloaded, Some(503)));
        assert_eq!(classify_within_success(r#"{"error":{"message":"x"}}"#).error.status, Some(500));
    }
}

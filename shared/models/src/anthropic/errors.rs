//! What a refusal of Anthropic's API means: why a call failed, and whether it may be tried again. The status and the documented
//! type of the error decide. Where both say too little, words of the message do; if Anthropic rewords it, the cause becomes less
//! exact. Nothing is retried here.

use std::time::Duration;

use domain::{FailureCause, RetryAdvice};

use super::wire::{ErrorDetail, ErrorReply};
use crate::error::CallError;
use crate::http;
use crate::secret::Secret;

/// Classifies a response with an error status and this body.
pub(super) fn classify(status: u16, retry_after: Option<Duration>, text: &str, key: &Secret) -> CallError {
    let detail = serde_json::from_str::<ErrorReply>(text)
        .map_or_else(|_| ErrorDetail { kind: String::new(), message: text.to_owned() }, |reply| reply.error);
    let (cause, retry) = judge(status, retry_after, &detail);
    http::said(cause, retry, &detail.message, Some(key)).with_status(status)
}

/// The first line that fits decides, so lines that look at the message stand before those of their status alone.
fn judge(status: u16, after: Option<Duration>, detail: &ErrorDetail) -> (FailureCause, RetryAdvice) {
    let text = detail.message.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let busy = RetryAdvice::RateLimited { after };
    match (status, detail.kind.as_str()) {
        (402, _) | (_, "billing_error") => (FailureCause::QuotaExhausted, RetryAdvice::No),
        // An empty account and a spending limit are reported as invalid requests.
        (400 | 403 | 429, _) if says(&["credit balance", "usage limits"]) => {
            (FailureCause::QuotaExhausted, RetryAdvice::No)
        }
        (401 | 403, _) => (FailureCause::Unauthorized, RetryAdvice::No),
        (400 | 413, _) if says(&["prompt is too long", "exceed context limit", "context window"]) => {
            (FailureCause::ContextExceeded, RetryAdvice::No)
        }
        (404, _) if says(&["model"]) => (FailureCause::ModelNotFound, RetryAdvice::No),
        (529, _) | (_, "overloaded_error") | (503, _) => (FailureCause::Overloaded, busy),
        (429, _) => (FailureCause::RateLimited, busy),
        (408 | 504, _) => (FailureCause::Timeout, RetryAdvice::Transient),
        (409 | 500.., _) => (FailureCause::Server, RetryAdvice::Transient),
        _ => (FailureCause::BadRequest, RetryAdvice::No),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_error_is_understood() {
        use FailureCause::{
            BadRequest, ContextExceeded, ModelNotFound, Overloaded, QuotaExhausted, RateLimited, Server,
            Timeout, Unauthorized,
        };
        let after = Some(Duration::from_secs(9));
        let (no, busy, again) = (RetryAdvice::No, RetryAdvice::RateLimited { after }, RetryAdvice::Transient);
        for (status, kind, message, cause, retry) in [
            (400, "invalid_request_error", "messages: at least one message is required", BadRequest, no),
            (
                400,
                "invalid_request_error",
                "prompt is too long: 210000 tokens > 200000 maximum",
                ContextExceeded,
                no,
            ),
            (
                400,
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
                ContextExceeded,
                no,
            ),
            (
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the API",
                QuotaExhausted,
                no,
            ),
            (
                400,
                "invalid_request_error",
                "You have reached your specified API usage limits.",
                QuotaExhausted,
                no,
            ),
            (401, "authentication_error", "invalid x-api-key", Unauthorized, no),
            (402, "billing_error", "payment required", QuotaExhausted, no),
            (403, "permission_error", "not allowed", Unauthorized, no),
            (404, "not_found_error", "model: claude-0", ModelNotFound, no),
            (404, "not_found_error", "no such route", BadRequest, no),
            (413, "request_too_large", "Request exceeds the maximum size", BadRequest, no),
            (429, "rate_limit_error", "too many tokens per minute", RateLimited, busy),
            (500, "api_error", "Internal server error", Server, again),
            (504, "timeout_error", "timed out", Timeout, again),
            (529, "overloaded_error", "Overloaded", Overloaded, busy),
        ] {
            let body = format!(
                r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"r"}}"#
            );
            let error = classify(status, after, &body, &Secret::new(""));
            assert_eq!((error.cause, error.retry, error.message.as_str()), (cause, retry, message));
        }
        assert_eq!(classify(502, None, "<html>", &Secret::new("")).cause, Server);
    }
}

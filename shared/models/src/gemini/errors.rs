//! What a refusal of Google's API means, by the statuses and typed details of Google APIs (`google.rpc`).

use std::time::Duration;

use domain::{FailureCause, RetryAdvice};

use super::wire::{GeminiErrorDetail, GeminiErrorReply};
use crate::error::CallError;
use crate::http;
use crate::secret::Secret;

/// Classifies a response with an error status and this body.
pub(super) fn classify(status: u16, retry_after: Option<Duration>, text: &str, key: &Secret) -> CallError {
    let detail = serde_json::from_str::<GeminiErrorReply>(text).map_or_else(
        |_| GeminiErrorDetail { message: text.to_owned(), details: Vec::new() },
        |reply| reply.error,
    );
    let (cause, retry) = judge(status, retry_after, &detail);
    http::said(cause, retry, &detail.message, Some(key)).with_status(status)
}

fn judge(
    status: u16,
    retry_after: Option<Duration>,
    detail: &GeminiErrorDetail,
) -> (FailureCause, RetryAdvice) {
    let text = detail.message.to_lowercase();
    let after =
        detail.details.iter().find_map(|extra| seconds(extra.retry_delay.as_deref()?)).or(retry_after);
    let busy = RetryAdvice::RateLimited { after };
    let refused = |extra: &super::wire::Extra| {
        matches!(extra.reason.as_deref(), Some("API_KEY_INVALID" | "API_KEY_SERVICE_BLOCKED"))
    };
    match status {
        401 | 403 => (FailureCause::Unauthorized, RetryAdvice::No),
        // This API reports a wrong key as an invalid argument.
        400 if detail.details.iter().any(refused) => (FailureCause::Unauthorized, RetryAdvice::No),
        400 if text.contains("input token count") && text.contains("exceeds") => {
            (FailureCause::ContextExceeded, RetryAdvice::No)
        }
        404 => (FailureCause::ModelNotFound, RetryAdvice::No),
        // The message is the same for limits per minute and per day; only the quota's name distinguishes them, and a
        // day is too long to wait.
        429 if detail
            .details
            .iter()
            .flat_map(|extra| &extra.violations)
            .any(|v| v.quota_id.contains("PerDay")) =>
        {
            (FailureCause::QuotaExhausted, RetryAdvice::No)
        }
        429 => (FailureCause::RateLimited, busy),
        503 => (FailureCause::Overloaded, busy),
        408 | 504 => (FailureCause::Timeout, RetryAdvice::Transient),
        501 => (FailureCause::Server, RetryAdvice::No),
        409 | 499.. => (FailureCause::Server, RetryAdvice::Transient),
        _ => (FailureCause::BadRequest, RetryAdvice::No),
    }
}

/// A duration such as `34s` or `34.5s`.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_error_is_understood() {
        use FailureCause::{
            BadRequest, ContextExceeded, ModelNotFound, Overloaded, QuotaExhausted, RateLimited, Server,
            Timeout, Unauthorized,
        };
        let (no, again) = (RetryAdvice::No, RetryAdvice::Transient);
        let busy = |after| RetryAdvice::RateLimited { after };
        let minute = r#"[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"RequestsPerMinutePerProject"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]"#;
        let day = r#"[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]},{"retryDelay":"34s"}]"#;
        for (status, message, details, cause, retry) in [
            (400, "Invalid value at 'generation_config'", "[]", BadRequest, no),
            (
                400,
                "API key not valid.",
                r#"[{"reason":"API_KEY_INVALID","domain":"googleapis.com"}]"#,
                Unauthorized,
                no,
            ),
            (
                400,
                "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
                "[]",
                ContextExceeded,
                no,
            ),
            (403, "Permission denied", "[]", Unauthorized, no),
            (404, "models/x is not found for API version v1beta", "[]", ModelNotFound, no),
            (
                429,
                "You exceeded your current quota",
                minute,
                RateLimited,
                busy(Some(Duration::from_millis(34_500))),
            ),
            (429, "You exceeded your current quota", day, QuotaExhausted, no),
            (429, "Resource has been exhausted", "[]", RateLimited, busy(None)),
            (500, "An internal error has occurred", "[]", Server, again),
            (503, "The model is overloaded.", "[]", Overloaded, busy(None)),
            (504, "Deadline exceeded", "[]", Timeout, again),
        ] {
            let body = format!(
                r#"{{"error":{{"code":{status},"message":"{message}","status":"X","details":{details}}}}}"#
            );
            let error = classify(status, None, &body, &Secret::new(""));
            assert_eq!((error.cause, error.retry, error.message.as_str()), (cause, retry, message));
        }
        assert_eq!(classify(502, None, "<html>", &Secret::new("")).cause, Server);
    }
}

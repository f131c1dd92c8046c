//! Classifies refusals, of all connectors.
//!
//! Servers roughly agree on statuses, and on little else. Codes and parameters are matched first, texts
//! second. The texts are in [`quirks`]; the tables in the tests here list refusals of vLLM 0.2 to 0.32, OpenAI, Anthropic, Google and
//! others.

use std::time::Duration;

use domain::{FailureCause, RetryAdvice};
use reqwest::Response;
use serde_json::Value;

use crate::deadline::CallClock;
use crate::error::CallError;
use crate::http::{self, Route};
use crate::quirks::{self, Remedy};
use crate::secret::Secret;
use crate::stops;

/// A failed call, and the correction that may fix it.
#[derive(Debug)]
pub(crate) struct Rejected {
    pub(crate) error: CallError,
    pub(crate) remedy: Option<Remedy>,
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
    /// All of it, in lower case.
    whole: String,
}

impl ErrorBody {
    /// Parses `{"error": {…}}`, `{"error": "…"}`, `{"detail": …}`, `{"object": "error", "message": …}`, a list of one of
    /// these, and a choice that holds one; anything else is the message itself.
    fn parse(text: &str) -> Self {
        let parsed = match serde_json::from_str(text) {
            Ok(Value::Object(body)) => Self::from_body(&body, text),
            Ok(Value::Array(parts)) => match parts.first() {
                Some(Value::Object(body)) => Self::from_body(body, text),
                _ => Self { message: text.to_owned(), ..Self::default() },
            },
            _ => Self { message: text.to_owned(), ..Self::default() },
        };
        Self { whole: text.to_lowercase(), ..parsed }
    }

    fn from_body(body: &serde_json::Map<String, Value>, text: &str) -> Self {
        let of_choice = || body.get("choices")?.get(0)?.get("error");
        let error = body.get("error").filter(|error| !error.is_null()).or_else(of_choice);
        match (error, body.get("detail")) {
            (Some(Value::Object(error)), _) => Self::from_fields(error, text),
            (Some(Value::String(error)), _) => {
                Self { message: error.clone(), ..Self::from_fields(body, text) }
            }
            (_, Some(Value::String(detail))) => Self { message: detail.clone(), ..Self::default() },
            (_, Some(detail)) => Self { message: detail.to_string(), ..Self::default() },
            _ => Self::from_fields(body, text),
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
        let own =
            Self { message, kind: word("type"), param: word("param"), code: word("code"), ..Self::default() };
        match fields.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(Value::as_str) {
            Some(raw) if !raw.is_empty() => own.of_provider(raw),
            _ => own,
        }
    }

    /// What a gateway says together with what the provider behind it has said (OpenRouter).
    fn of_provider(self, raw: &str) -> Self {
        // A text like any other where it holds a further one: nobody sends many within each other.
        let of_provider = match serde_json::from_str(raw) {
            Ok(Value::Object(body)) if !raw.contains("\"metadata\"") => Self::from_body(&body, raw),
            _ => Self { message: raw.to_owned(), ..Self::default() },
        };
        let or = |own: String, other: String| if own.is_empty() { other } else { own };
        Self {
            message: format!("{}: {}", self.message, of_provider.message),
            kind: or(self.kind, of_provider.kind),
            param: or(self.param, of_provider.param),
            code: or(self.code, of_provider.code),
            whole: self.whole,
        }
    }
}

/// Sends a request; passes on a success, and classifies the rest.
pub(crate) async fn send(
    route: &Route,
    body: Option<Vec<u8>>,
    clock: &CallClock,
    key: Option<&Secret>,
) -> Result<Response, Rejected> {
    let response = clock.wait(route.send(body)).await??;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let (retry_after, url) = (http::retry_after(response.headers()), response.url().to_string());
    // An error status counts even if its body never arrives.
    let body = clock.wait(http::read_refusal(response)).await.unwrap_or_default();
    let rejected = classify(status.as_u16(), retry_after, &String::from_utf8_lossy(&body), key);
    Err(Rejected { error: rejected.error.asked_at(&url), ..rejected })
}

/// Longest wait that a limit of a rate asks for, in seconds. One that asks for more is a quota of hours or days, for which nobody
/// waits with calls under way.
const RATE_WAIT_SECONDS_MAX: u64 = 600;

/// Classifies a response with an error status and this body.
pub(crate) fn classify(
    status: u16,
    retry_after: Option<Duration>,
    text: &str,
    key: Option<&Secret>,
) -> Rejected {
    classify_body(status, retry_after, &ErrorBody::parse(text), key)
}

/// The same for an error with status 200, for example in a stream: the body's code is the status.
pub(crate) fn classify_within_success(text: &str, key: Option<&Secret>) -> Rejected {
    let body = ErrorBody::parse(text);
    let status = body.code.parse().ok().filter(|status| (400..600).contains(status)).unwrap_or(500);
    classify_body(status, None, &body, key)
}

fn classify_body(
    status: u16,
    retry_after: Option<Duration>,
    body: &ErrorBody,
    key: Option<&Secret>,
) -> Rejected {
    let wait = retry_after.or_else(|| quirks::wait(&body.whole, domain::machine::now()));
    let (cause, retry, remedy) = judge(status, wait, body);
    let mut error = http::said(cause, retry, &body.message, key).with_status(status);
    // Google asks for seconds with a limit of a day, too: they say nothing of when it is renewed.
    if cause == FailureCause::QuotaExhausted && wait.is_some_and(is_long) {
        error = error.resetting_in(wait);
    }
    Rejected { error, remedy }
}

fn judge(
    status: u16,
    wait: Option<Duration>,
    body: &ErrorBody,
) -> (FailureCause, RetryAdvice, Option<Remedy>) {
    let text = body.message.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let tells = |parts: &[&str]| parts.iter().any(|part| body.whole.contains(part));
    let busy = RetryAdvice::RateLimited { after: wait };
    let transient = RetryAdvice::Transient;
    let final_ = |cause| (cause, RetryAdvice::No, None);
    let refused = |remedy| (FailureCause::BadRequest, RetryAdvice::No, Some(remedy));

    if stops::is_filtered(&body.whole) {
        return refused(Remedy::Withheld);
    }
    let is_poor =
        quirks::POOR.iter().any(|poor| body.code == *poor || body.kind == *poor) || says(quirks::POOR);
    if status == 401 || (status == 403 && !is_poor) {
        return final_(FailureCause::Unauthorized);
    }
    if status == 429 {
        // Google speaks of a quota in both cases; only the limit's name or the time to wait tells which.
        let is_rate = tells(quirks::PER_MINUTE) || wait.is_some();
        return match () {
            () if is_poor || wait.is_some_and(is_long) || tells(quirks::PER_DAY) => {
                final_(FailureCause::QuotaExhausted)
            }
            () if says(quirks::NO_MONEY) && !is_rate => final_(FailureCause::QuotaExhausted),
            () if body.code == "context_length_exceeded" => final_(FailureCause::ContextExceeded),
            () if says(&["overloaded", "busy", "queue"]) => (FailureCause::Overloaded, busy, None),
            () => (FailureCause::RateLimited, busy, None),
        };
    }
    if status == 402 || is_poor || says(quirks::NO_MONEY) {
        return final_(FailureCause::QuotaExhausted);
    }
    if body.code == "context_length_exceeded"
        || body.kind == "exceed_context_size_error"
        || body.param == "input_tokens"
        || says(quirks::CONTEXT)
    {
        let remedy = match quirks::context_numbers(&text).or_else(|| quirks::context_numbers(&body.whole)) {
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
    // Templates fail with the status of a server's fault at llama.cpp and SGLang.
    if matches!(status, 400 | 422 | 500) && says(quirks::ROLES) {
        return refused(Remedy::FoldRoles);
    }
    match status {
        // Servers in Python, and gateways before strict servers, say so of requests, too.
        500 if let Some(remedy) = quirks::remedy_of_fault(&body.whole) => {
            (FailureCause::Server, transient, Some(remedy))
        }
        503 | 529 => (FailureCause::Overloaded, busy, None),
        408 | 504 => (FailureCause::Timeout, transient, None),
        501 | 505 => final_(FailureCause::Server),
        // A draining vLLM answers 500 "cannot schedule new futures after shutdown"; a retry reaches another server.
        409 | 499.. => (FailureCause::Server, transient, None),
        404 if body.param == "model" || says(&["model"]) => final_(FailureCause::ModelNotFound),
        400 | 404 if tells(quirks::NO_MODEL) => final_(FailureCause::ModelNotFound),
        400 if tells(quirks::WRONG_KEY) => final_(FailureCause::Unauthorized),
        400 | 422 => match quirks::most_tokens(&body.whole) {
            Some(remedy) => refused(remedy),
            None => match quirks::refused_field(&body.whole) {
                Some((field, steps)) => refused(Remedy::Field { field, steps }),
                None if quirks::refuses_max_tokens(&body.whole) => refused(Remedy::CompletionTokens),
                None => final_(FailureCause::BadRequest),
            },
        },
        _ => final_(FailureCause::BadRequest),
    }
}

fn is_long(wait: Duration) -> bool {
    wait.as_secs() > RATE_WAIT_SECONDS_MAX
}

#[cfg(test)]
mod tests;

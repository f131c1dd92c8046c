//! Error replies, in the three shapes that vLLM sends.

use hyper::StatusCode;
use serde_json::{Value, json};

/// A reply that is not the one asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
    /// Seconds for the header `Retry-After`.
    pub(crate) retry_after_s: Option<u32>,
    /// Value of the header `Allow`, with status 405.
    pub(crate) allow: Option<&'static str>,
}

impl ApiError {
    fn with_body(status: StatusCode, body: Value) -> Self {
        Self { status, body, retry_after_s: None, allow: None }
    }

    /// The first shape: errors of the model API itself.
    fn of_api(status: StatusCode, message: &str, kind: &str, param: Option<&str>) -> Self {
        let error = json!({ "message": message, "type": kind, "param": param, "code": status.as_u16() });
        Self::with_body(status, json!({ "error": error }))
    }

    /// A parameter that vLLM's own checks refuse; they append the parameter to the message.
    pub(crate) fn parameter(name: &str, value: &str, problem: &str) -> Self {
        let message = format!("{problem} (parameter={name}, value={value})");
        Self::of_api(StatusCode::BAD_REQUEST, &message, "BadRequestError", Some(name))
    }

    /// A request that makes no sense to the chat template.
    pub(crate) fn bad_request(message: &str) -> Self {
        Self::of_api(StatusCode::BAD_REQUEST, message, "BadRequestError", None)
    }

    /// A body that the request schema refuses; this one type is written with a space.
    pub(crate) fn validation(kind: &str, place: &str, problem: &str, input: &str) -> Self {
        let message = format!(
            "1 validation error:\n  {{'type': '{kind}', 'loc': '{place}', 'msg': '{problem}', 'input': '{input}'}}"
        );
        Self::of_api(StatusCode::BAD_REQUEST, &message, "Bad Request", Some(place))
    }

    /// A body that is not JSON from byte `at` on.
    pub(crate) fn not_json(at: usize) -> Self {
        let place = format!("body.{at}");
        let message = format!(
            "1 validation error:\n  {{'type': 'json_invalid', 'loc': '{place}', 'msg': 'JSON decode error', \
             'input': '<dict of 0 items>', 'ctx': {{'error': 'Expecting value'}}}}"
        );
        Self::of_api(StatusCode::BAD_REQUEST, &message, "Bad Request", Some(&place))
    }

    /// A model that is not served here.
    pub(crate) fn unknown_model(name: &str, served: &[&str]) -> Self {
        let message = format!("The model `{name}` does not exist. Valid aliases: {}.", served.join(", "));
        Self::of_api(StatusCode::NOT_FOUND, &message, "NotFoundError", Some("model"))
    }

    /// The same as the paths of embedders and classifiers say it.
    pub(crate) fn unknown_pooling_model(name: &str) -> Self {
        let message = format!("The model `{name}` does not exist.");
        Self::of_api(StatusCode::NOT_FOUND, &message, "NotFoundError", None)
    }

    /// A full queue.
    fn overloaded() -> Self {
        let message = "The engine is currently busy and cannot accept new requests. Please try again later or on a \
                       different instance.";
        Self::of_api(StatusCode::SERVICE_UNAVAILABLE, message, "Service Unavailable", None)
    }

    /// The second shape: a wrong or missing key.
    pub(crate) fn unauthorized() -> Self {
        Self::with_body(StatusCode::UNAUTHORIZED, json!({ "error": "Unauthorized" }))
    }

    /// The third shape: no such path.
    pub(crate) fn not_found() -> Self {
        Self::with_body(StatusCode::NOT_FOUND, json!({ "detail": "Not Found" }))
    }

    /// The third shape: a path that knows other methods.
    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        let body = json!({ "detail": "Method Not Allowed" });
        Self { allow: Some(allow), ..Self::with_body(StatusCode::METHOD_NOT_ALLOWED, body) }
    }

    /// A body beyond the simulator's own limit.
    pub(crate) fn too_large() -> Self {
        Self::with_body(StatusCode::PAYLOAD_TOO_LARGE, json!({ "detail": "Payload Too Large" }))
    }

    /// The reply of an injected fault: what vLLM says with this status, or a gateway where vLLM never sends it.
    pub(crate) fn injected(code: u16, retry_after_s: Option<u32>, model: &str) -> Self {
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let error = match code {
            401 => Self::unauthorized(),
            404 => Self::unknown_model(model, &["another-model"]),
            429 => {
                // OpenAI's body: vLLM itself has no rate limits, gateways before it do.
                let error = json!({
                    "message": "Rate limit reached for requests. Please try again later.",
                    "type": "requests",
                    "param": null,
                    "code": "rate_limit_exceeded",
                });
                Self::with_body(status, json!({ "error": error }))
            }
            503 => Self::overloaded(),
            400..=499 => {
                Self::of_api(status, "Injected fault: the request is refused.", "BadRequestError", None)
            }
            // What vLLM says while it shuts down.
            _ => {
                let message = "cannot schedule new futures after shutdown";
                Self::of_api(status, message, "InternalServerError", None)
            }
        };
        Self { retry_after_s, ..error }
    }
}

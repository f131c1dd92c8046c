//! Errors of the API as problem details (RFC 9457), with the words that the command line prints.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::{ErrorCode, ServiceError};
use serde::{Deserialize, Serialize};

use crate::status::shortened;

/// Media type of a problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Problem {
    /// Always `about:blank`: `code` says which problem it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// The words of the status.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// What failed, with which input, and what to do.
    pub detail: String,
    /// What can be done about it.
    pub code: ErrorCode,
}

/// The status of an answer with this error.
fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Invalid => StatusCode::BAD_REQUEST,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::Conflict => StatusCode::CONFLICT,
        ErrorCode::Incompatible => StatusCode::NOT_IMPLEMENTED,
        ErrorCode::Denied => StatusCode::FORBIDDEN,
        ErrorCode::Full => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl Problem {
    /// An error in an answer of this status.
    pub(crate) fn with(status: StatusCode, error: &ServiceError) -> Self {
        Self {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail: shortened(error.message.clone()),
            code: error.code,
        }
    }

    /// The answer to a caller whom nobody knows.
    pub(crate) fn unauthenticated(error: &ServiceError) -> Response {
        let mut response = Self::with(StatusCode::UNAUTHORIZED, error).into_response();
        let bearer = axum::http::HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        response
    }
}

impl From<&ServiceError> for Problem {
    fn from(error: &ServiceError) -> Self {
        Self::with(status(error.code), error)
    }
}

impl From<Problem> for ServiceError {
    fn from(problem: Problem) -> Self {
        Self::new(problem.code, problem.detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        (status, [(header::CONTENT_TYPE, PROBLEM_JSON)], body).into_response()
    }
}

/// The error that an answer of `peer` tells. Without a problem of ours in it, it comes from something between the two sides:
/// only errors that a retry cannot fix are distinguished.
pub(crate) fn read(status: StatusCode, body: &[u8], peer: &str) -> ServiceError {
    if let Ok(problem) = serde_json::from_slice::<Problem>(body) {
        return problem.into();
    }
    let (code, advice) = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => (ErrorCode::Denied, ""),
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => (ErrorCode::Invalid, ""),
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => (
            ErrorCode::Incompatible,
            "; it does not know this call: it is older, or not a kgfleet coordinator",
        ),
        _ => (ErrorCode::Unavailable, ""),
    };
    ServiceError::new(code, format!("no answer from {peer}: {status}{advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back_as_itself_and_a_foreign_answer_as_the_nearest() {
        for code in ErrorCode::ALL {
            let error = ServiceError::new(code, format!("run `a` is gone: ü\n{code:?}"));
            let body = serde_json::to_vec(&Problem::from(&error)).unwrap();
            assert_eq!(read(status(code), &body, "there"), error);
        }
        for (status, code) in [
            (StatusCode::UNAUTHORIZED, ErrorCode::Denied),
            (StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::Invalid),
            (StatusCode::NOT_FOUND, ErrorCode::Incompatible),
            (StatusCode::BAD_GATEWAY, ErrorCode::Unavailable),
            (StatusCode::TOO_MANY_REQUESTS, ErrorCode::Unavailable),
        ] {
            let error = read(status, b"<html>", "there");
            assert_eq!(error.code, code);
            assert!(error.message.contains("there") && error.message.contains(status.as_str()), "{error}");
        }
    }
}

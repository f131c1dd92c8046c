//! Replies as vLLM sends them.

use bytes::Bytes;
use hyper::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, SERVER, VARY};
use hyper::{Response, StatusCode};

use super::body::{SimBody, truncated, whole};
use crate::wire::error::ApiError;

/// A good reply with vLLM's headers; hyper adds the date.
pub(super) fn reply(content_type: &'static str, body: SimBody) -> Response<SimBody> {
    let mut response = empty();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    *response.body_mut() = body;
    response
}

/// A good reply with a JSON body.
pub(super) fn json(body: impl Into<Bytes>) -> Response<SimBody> {
    reply("application/json", whole(body))
}

/// The same, which announces all of its bytes and ends after half of them.
pub(super) fn half_of_json(body: impl Into<Bytes>) -> Response<SimBody> {
    let body: Bytes = body.into();
    let mut response = reply("application/json", truncated(&body));
    response.headers_mut().insert(CONTENT_LENGTH, body.len().into());
    response
}

/// A good reply without a body.
pub(super) fn empty() -> Response<SimBody> {
    let mut response = Response::new(whole(""));
    let headers = response.headers_mut();
    headers.insert(SERVER, HeaderValue::from_static("uvicorn"));
    headers.insert(VARY, HeaderValue::from_static("Origin"));
    response
}

pub(super) fn error_reply(error: &ApiError) -> Response<SimBody> {
    let mut response = json(error.body.to_string());
    *response.status_mut() = error.status;
    let headers = response.headers_mut();
    if error.status == StatusCode::UNAUTHORIZED {
        // vLLM's key check sits outside the layer that adds this one.
        headers.remove(VARY);
    }
    if let Some(seconds) = error.retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(allow) = error.allow {
        headers.insert(ALLOW, HeaderValue::from_static(allow));
    }
    response
}

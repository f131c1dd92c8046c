//! Replies as vLLM sends them.

use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, SERVER, VARY};
use hyper::{Response, StatusCode};

use super::body::SimBody;
use crate::wire::error::ApiError;

/// A good reply with vLLM's headers; hyper adds the date.
pub(super) fn reply(content_type: &'static str, body: SimBody) -> Response<SimBody> {
    let mut response = empty();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    *response.body_mut() = body;
    response
}

/// A good reply with a JSON body.
pub(super) fn json(body: SimBody) -> Response<SimBody> {
    reply("application/json", body)
}

pub(super) fn json_value(body: &serde_json::Value) -> Response<SimBody> {
    json(SimBody::whole(body.to_string()))
}

/// A good reply without a body.
pub(super) fn empty() -> Response<SimBody> {
    let mut response = Response::new(SimBody::Whole(None));
    let headers = response.headers_mut();
    headers.insert(SERVER, HeaderValue::from_static("uvicorn"));
    headers.insert(VARY, HeaderValue::from_static("Origin"));
    response
}

pub(super) fn error_reply(error: &ApiError) -> Response<SimBody> {
    let mut response = json_value(&error.body);
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

//! Sends requests and reads bounded bodies, for all connectors.

use std::time::Duration;

use bytes::Bytes;
use domain::text::with_causes;
use domain::{FailureCause, RetryAdvice};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Request, Response, Url};

use crate::body::{BODY_BYTES_MAX, ResponseBody};
use crate::client;
use crate::error::{CallError, SetupError};
use crate::rates;
use crate::secret::{Secret, scrub_with};

/// Maximum number of bytes read from an error body.
pub const ERROR_BODY_BYTES_MAX: usize = 64 << 10;

/// Parses the address of an API. A user or password in it is refused, because it would appear in messages; keys have
/// their own setting.
///
/// # Errors
/// It is not http or https, has no host, or has a user or password.
pub fn parse_endpoint(endpoint: &str) -> Result<Url, SetupError> {
    let mut url = with_query(endpoint)?;
    url.set_query(None);
    Ok(url)
}

/// The same with its query.
fn with_query(endpoint: &str) -> Result<Url, SetupError> {
    let fail = |reason: &str| SetupError::Endpoint {
        // The part before `@` may be a password.
        endpoint: endpoint.rsplit('@').next().unwrap_or_default().to_owned(),
        reason: reason.to_owned(),
    };
    let mut url = Url::parse(endpoint).map_err(|error| fail(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(fail("it must begin with http:// or https:// and name a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fail("it must not hold a user or password; set the key instead"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Routes of OpenAI's API that users tend to copy with its address.
const ROUTES: [&str; 3] = ["/chat/completions", "/completions", "/models"];

/// Routes of other APIs, with their names.
const OTHER_ROUTES: [(&str, &str); 7] = [
    ("/embeddings", "embeddings"),
    ("/responses", "OpenAI's Responses API"),
    ("/messages", "Anthropic's API"),
    ("/api/chat", "Ollama's own API"),
    ("/api/generate", "Ollama's own API"),
    ("/metrics", "measurements"),
    ("/health", "health"),
];

/// Normalises the address of an OpenAI-compatible API. `http://h`, `http://h/v1`, `http://h/v1/` and
/// `http://h/v1/chat/completions` become one; any other path is kept, and so is a query, which Azure and gateways need.
///
/// # Errors
/// As [`parse_endpoint`], or the address belongs to another API.
pub fn api_base(endpoint: &str) -> Result<Url, SetupError> {
    let mut url = with_query(endpoint)?;
    let given = url.path().trim_end_matches('/').to_owned();
    let given = given.as_str();
    if let Some((route, what)) = OTHER_ROUTES.iter().find(|(route, _)| given.ends_with(route)) {
        let base = given.strip_suffix(route).unwrap_or_default();
        url.set_path(if base.is_empty() { "/v1" } else { base });
        return Err(SetupError::Endpoint {
            endpoint: endpoint.to_owned(),
            reason: format!("`{route}` is for {what}; chat is asked below an address such as {url}"),
        });
    }
    let base = ROUTES.iter().find_map(|route| given.strip_suffix(route)).unwrap_or(given);
    let base = base.trim_end_matches('/').to_owned();
    url.set_path(if base.is_empty() { "/v1" } else { &base });
    Ok(url)
}

/// Appends path segments to `base`, whether or not it ends with a slash.
pub(crate) fn join(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

/// A route of an API with its headers, prepared once and used for every call.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    client: Client,
    method: Method,
    url: Url,
    headers: HeaderMap,
}

impl Route {
    pub(crate) fn get(client: Client, url: Url, headers: HeaderMap) -> Self {
        Self { client, method: Method::GET, url, headers }
    }

    pub(crate) fn post(client: Client, url: Url, mut headers: HeaderMap) -> Self {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { client, method: Method::POST, url, headers }
    }

    #[cfg(test)]
    pub(crate) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Sends the request, and returns when the response headers arrive, whatever the status.
    pub(crate) async fn send(&self, body: Option<Vec<u8>>) -> Result<Response, CallError> {
        let mut request = Request::new(self.method.clone(), self.url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = body.map(Into::into);
        self.client.execute(request).await.map_err(transport_error)
    }
}

/// Reads the whole body of a success.
pub(crate) async fn read_body(response: Response) -> Result<Bytes, CallError> {
    let status = response.status().as_u16();
    whole(read_up_to(response, BODY_BYTES_MAX).await?, status)
}

/// The body of a success, if it was read whole.
pub(crate) fn whole((body, complete): (Bytes, bool), status: u16) -> Result<Bytes, CallError> {
    if complete {
        return Ok(body);
    }
    let message = format!("the answer's body has more than {BODY_BYTES_MAX} bytes");
    Err(CallError::new(FailureCause::Server, RetryAdvice::No, message).with_status(status))
}

/// Reads what a server says with an error status: the beginning of the body, or where it redirects to. A body that breaks
/// off is ignored: the status says enough.
pub(crate) async fn read_refusal(response: Response) -> Bytes {
    if let Some(place) = client::redirect_place(&response) {
        return client::all_words(&place).into();
    }
    read_up_to(response, ERROR_BODY_BYTES_MAX).await.map(|(body, _)| body).unwrap_or_default()
}

/// Reads at most `bytes_max` bytes of a body, and returns whether that is all of it.
///
/// # Errors
/// It breaks off, or is compressed in a way that is not known here.
pub async fn read_up_to(response: Response, bytes_max: usize) -> Result<(Bytes, bool), CallError> {
    let mut body = ResponseBody::of(response);
    let Some(first) = body.chunk().await? else {
        return Ok((Bytes::new(), true));
    };
    body.rest_of(first, bytes_max).await
}

/// How long to wait before the next call, as far as headers say so.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    rates::wait(headers, domain::machine::now())
}

/// The error for a call without response headers.
fn transport_error(error: reqwest::Error) -> CallError {
    let error = error.without_url();
    let (cause, retry) = if error.is_builder() {
        (FailureCause::BadRequest, RetryAdvice::No)
    } else if error.is_connect() {
        (FailureCause::Connection, RetryAdvice::Unreachable)
    } else if error.is_timeout() {
        (FailureCause::Timeout, RetryAdvice::Transient)
    } else {
        (FailureCause::Connection, RetryAdvice::Transient)
    };
    let chain = with_causes(&error);
    CallError::new(cause, retry, wrong_scheme(&chain).unwrap_or(&chain))
}

/// Explains an error caused by TLS on only one of the two sides.
fn wrong_scheme(chain: &str) -> Option<&'static str> {
    if chain.contains("InvalidContentType") {
        Some("the server does not speak TLS there: write http:// instead of https://, or name its TLS port")
    } else if chain.contains("invalid HTTP version") {
        Some("the server does not answer in HTTP; if it speaks TLS, write https:// instead of http://")
    } else {
        None
    }
}

/// The error for a request that is no JSON.
pub(crate) fn unserialisable(error: serde_json::Error) -> CallError {
    let message = format!("the request cannot be serialised: {error}");
    CallError::new(FailureCause::BadRequest, RetryAdvice::No, message)
}

/// An error with a message of a server, as it reads once its body is parsed: the key is removed from it, before it is shortened,
/// because half a key could not be found. Every message that a server may have chosen comes in here.
pub(crate) fn said(
    cause: FailureCause,
    retry: RetryAdvice,
    message: &str,
    key: Option<&Secret>,
) -> CallError {
    CallError::new(cause, retry, scrub_with(key, message))
}

/// The error for an answer that no version of an API sends. A retry may get a better one.
pub(crate) fn unusable(message: &str) -> CallError {
    CallError::new(FailureCause::Server, RetryAdvice::Transient, message)
}

/// The same for an answer that is not the expected JSON.
pub(crate) fn unparsable(error: &impl std::fmt::Display, key: Option<&Secret>) -> CallError {
    let message = format!("the answer cannot be parsed: {error}");
    said(FailureCause::Server, RetryAdvice::Transient, &message, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_checked_and_never_show_a_password() {
        assert_eq!(
            join(&parse_endpoint("http://h:1/v1/?x=1#y").unwrap(), "models").as_str(),
            "http://h:1/v1/models"
        );
        for wrong in ["h:1/v1", "ftp://h", "http://", "", "http://u:hunter2@h", "http://u:hunter2@ h"] {
            let error = parse_endpoint(wrong).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn one_api_has_one_address() {
        let base =
            |endpoint| api_base(endpoint).map(|url| url.to_string()).map_err(|error| error.to_string());
        for same in [
            "http://h",
            "http://h/",
            "http://h/v1",
            "http://h/v1/",
            "http://h/v1//",
            "http://h/v1/chat/completions",
        ] {
            assert_eq!(base(same).unwrap(), "http://h/v1", "{same}");
        }
        for (given, meant) in [
            ("http://h/v1/models", "http://h/v1"),
            ("http://h/v1/chat/completions/?api-version=1#x", "http://h/v1?api-version=1"),
            ("https://h/openai/deployments/a/chat/completions?v=1", "https://h/openai/deployments/a?v=1"),
            ("https://h/gateway/llm/", "https://h/gateway/llm"),
        ] {
            assert_eq!(base(given).unwrap(), meant, "{given}");
        }
        for (other, words) in [
            ("http://h/v1/embeddings", "such as http://h/v1"),
            ("http://h:11434/api/chat", "Ollama's own API"),
            ("http://h/health", "such as http://h/v1"),
        ] {
            let error = base(other).unwrap_err();
            assert!(error.contains(words) && error.contains(other), "{error}");
        }
    }
}

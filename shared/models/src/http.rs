//! Sends requests and reads bounded bodies, for all connectors.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use domain::text::with_causes;
use domain::{FailureCause, RetryAdvice};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Request, Response, Url};

use crate::client;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::secret::{Secret, scrub_with};

/// Maximum size of a reply body read in one piece, in bytes: a text of [`crate::chat::ANSWER_BYTES_MAX`] may take
/// several times as many bytes as JSON.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// Maximum number of bytes read from an error body.
pub const ERROR_BODY_BYTES_MAX: usize = 64 << 10;

/// Parses the address of an API. A user or password in it is refused, because it would appear in messages; keys have
/// their own setting.
///
/// # Errors
/// It is not http or https, has no host, or has a user or password.
pub fn parse_endpoint(endpoint: &str) -> Result<Url, SetupError> {
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
    url.set_query(None);
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
/// `http://h/v1/chat/completions` become one; any other path is kept.
///
/// # Errors
/// As [`parse_endpoint`], or the address belongs to another API.
pub fn api_base(endpoint: &str) -> Result<Url, SetupError> {
    let mut url = parse_endpoint(endpoint)?;
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

    pub(crate) fn delete(client: Client, url: Url, headers: HeaderMap) -> Self {
        Self { client, method: Method::DELETE, url, headers }
    }

    /// The same route for a call that belongs to this span of a trace.
    pub(crate) fn traced(&self, traceparent: &str) -> Self {
        let mut route = self.clone();
        if let Ok(value) = HeaderValue::from_str(traceparent) {
            route.headers.insert(HeaderName::from_static("traceparent"), value);
        }
        route
    }

    /// The same route for a body that is no JSON.
    pub(crate) fn of_type(mut self, content_type: HeaderValue) -> Self {
        self.headers.insert(CONTENT_TYPE, content_type);
        self
    }

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

/// A response that is not streamed.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    /// The complete body of a success, or the beginning of an error's.
    pub(crate) body: Bytes,
}

impl Exchange {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The error body as text, without the key.
    pub(crate) fn error_text(&self, key: &Secret) -> String {
        key.scrub(&String::from_utf8_lossy(&self.body)).into_owned()
    }
}

/// Sends the request and reads the whole response, until the clock's limit.
pub(crate) async fn exchange(
    route: &Route,
    body: Option<Vec<u8>>,
    clock: &CallClock,
) -> Result<Exchange, CallError> {
    read_whole(clock.wait(route.send(body)).await??, clock).await
}

/// Reads a whole response, until the clock's limit.
pub(crate) async fn read_whole(response: Response, clock: &CallClock) -> Result<Exchange, CallError> {
    let (status, retry_after) = (response.status(), retry_after(response.headers()));
    let body = if status.is_success() {
        clock.wait(read_body(response)).await??
    } else {
        // An error status counts even if its body never arrives.
        clock.wait(read_refusal(response)).await.unwrap_or_default()
    };
    Ok(Exchange { status: status.as_u16(), retry_after, body })
}

/// Reads the whole body of a success.
pub(crate) async fn read_body(response: Response) -> Result<Bytes, CallError> {
    let status = response.status().as_u16();
    let (body, complete) = read_up_to(response, BODY_BYTES_MAX).await?;
    if complete {
        return Ok(body);
    }
    let message = format!("the answer's body has more than {BODY_BYTES_MAX} bytes");
    Err(CallError::new(FailureCause::Server, RetryAdvice::No, message).with_status(status))
}

/// Reads a body line by line. Of lines, too, none may have more than [`BODY_BYTES_MAX`] bytes.
pub(crate) async fn read_lines(mut response: Response, mut each: impl FnMut(&[u8])) -> Result<(), CallError> {
    let status = response.status().as_u16();
    let (mut rest, mut searched) = (BytesMut::new(), 0);
    while let Some(chunk) = response.chunk().await.map_err(broken_body)? {
        rest.extend_from_slice(&chunk);
        while let Some(end) = memchr::memchr(b'\n', &rest[searched..]) {
            let line = rest.split_to(searched + end + 1);
            each(line.trim_ascii());
            searched = 0;
        }
        searched = rest.len();
        if searched > BODY_BYTES_MAX {
            let message = format!("a line of the answer has more than {BODY_BYTES_MAX} bytes");
            return Err(CallError::new(FailureCause::Server, RetryAdvice::No, message).with_status(status));
        }
    }
    each(rest.trim_ascii());
    Ok(())
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
async fn read_up_to(mut response: Response, bytes_max: usize) -> Result<(Bytes, bool), CallError> {
    let Some(mut first) = response.chunk().await.map_err(broken_body)? else {
        return Ok((Bytes::new(), true));
    };
    let mut rest = BytesMut::new();
    while first.len() + rest.len() <= bytes_max {
        match response.chunk().await.map_err(broken_body)? {
            // Most responses arrive in one piece, which is used without copying.
            None if rest.is_empty() => return Ok((first, true)),
            None => {
                let mut whole = BytesMut::with_capacity(first.len() + rest.len());
                whole.extend_from_slice(&first);
                whole.extend_from_slice(&rest);
                return Ok((whole.freeze(), true));
            }
            Some(chunk) => rest.extend_from_slice(&chunk),
        }
    }
    first.truncate(bytes_max);
    Ok((first, false))
}

/// Parses a `Retry-After` in seconds. The other form, a date, depends on two clocks agreeing, and no model server
/// sends it.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
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

/// The error for an answer that no version of an API sends. A retry may get a better one.
pub(crate) fn unusable(message: &str) -> CallError {
    CallError::new(FailureCause::Server, RetryAdvice::Transient, message)
}

/// The same for an answer that is not the expected JSON.
pub(crate) fn unparsable(error: &serde_json::Error, key: Option<&Secret>) -> CallError {
    unusable(&scrub_with(key, &format!("the answer cannot be parsed: {error}")))
}

/// The error for a body that broke off.
pub(crate) fn broken_body(error: reqwest::Error) -> CallError {
    let message = format!("the answer broke off: {}", with_causes(&error.without_url()));
    CallError::new(FailureCause::Aborted, RetryAdvice::Transient, message)
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
            ("http://h/v1/chat/completions/?stream=1", "http://h/v1"),
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

    #[test]
    fn retry_after_is_read_in_seconds() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            retry_after(&headers)
        };
        assert_eq!(read("3"), Some(Duration::from_secs(3)));
        assert_eq!(read(" 0.5 "), Some(Duration::from_millis(500)));
        for useless in ["-1", "NaN", "1e300", "Wed, 21 Oct 2026 07:28:00 GMT", ""] {
            assert_eq!(read(useless), None, "{useless}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}

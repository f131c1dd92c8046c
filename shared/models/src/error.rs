//! Errors of model calls.

use domain::dialogue::FailedCall;
use domain::{FailureCause, RetryAdvice};
use jiff::Timestamp;

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}: {}", self.in_words())]
pub struct CallError {
    pub cause: FailureCause,
    /// Message of the server or the network: one line, at most [`CallError::MESSAGE_BYTES_MAX`] bytes, without keys.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retry: RetryAdvice,
    /// The HTTP status, if the server sent one.
    pub status: Option<u16>,
    /// The address that was asked, if the message alone does not explain the error.
    pub place: Option<String>,
}

impl CallError {
    /// Maximum size of a message, in bytes: enough for every known server message, too short for a web page.
    pub const MESSAGE_BYTES_MAX: usize = 500;

    /// An error without a status. The message is shortened and stripped of control characters, because it is
    /// untrusted and ends up in logs and on terminals. Remove keys before (see [`crate::secret::Secret::scrub`]): a
    /// shortened key could no longer be found.
    pub fn new(cause: FailureCause, retry: RetryAdvice, message: impl AsRef<str>) -> Self {
        Self { cause, message: one_line(message.as_ref()), retry, status: None, place: None }
    }

    /// Adds the HTTP status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds the address that was asked, if it helps to explain the error: the server sent no message, or knows no
    /// such route.
    pub fn asked_at(mut self, url: &str) -> Self {
        let no_route = matches!(self.status, Some(404 | 405)) && self.cause == FailureCause::BadRequest;
        if self.message.is_empty() || no_route {
            self.place = Some(one_line(url));
        }
        self
    }

    /// Status, address and message, as far as they are known: the text for records and people.
    pub fn in_words(&self) -> String {
        let status = self.status.map(|status| format!("HTTP {status}"));
        let place = self.place.as_ref().map(|place| format!("from {place}"));
        let head = [status, place].into_iter().flatten().collect::<Vec<_>>().join(" ");
        match (head.as_str(), self.message.as_str()) {
            ("", message) => message.to_owned(),
            (head, "") => format!("{head}, without a message"),
            (head, message) => format!("{head}: {message}"),
        }
    }

    /// Adds the part of the work that failed, such as a route or one of several inputs.
    pub(crate) fn about(self, part: &str) -> Self {
        Self { message: one_line(&format!("{part}: {}", self.message)), ..self }
    }

    /// The form in which a record stores this attempt.
    pub fn to_failed_call(&self, at: Timestamp) -> FailedCall {
        FailedCall { at, cause: self.cause, message: self.in_words() }
    }
}

/// Why a connector cannot be built from its configuration.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The endpoint is not a usable address.
    #[error("endpoint `{endpoint}` cannot be used: {reason}")]
    Endpoint {
        /// The endpoint as configured, without a part that might be a password.
        endpoint: String,
        reason: String,
    },
    /// A key contains characters that an HTTP header cannot carry.
    #[error("the key contains characters that cannot be sent in an HTTP header (line breaks, perhaps)")]
    KeyCharacters,
    /// A key could not be found.
    #[error("key: {0}")]
    KeyMissing(String),
    /// The HTTP client could not be built, for example because the machine has no certificate authorities.
    #[error("cannot set up the HTTP client: {0}")]
    Client(String),
}

/// Makes the text one line of bounded length.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(CallError::MESSAGE_BYTES_MAX));
    for c in text.trim().chars() {
        if line.len() + c.len_utf8() > CallError::MESSAGE_BYTES_MAX - '…'.len_utf8() {
            line.push('…');
            break;
        }
        line.push(if c.is_control() { ' ' } else { c });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_short_line_without_control_characters() {
        let error = CallError::new(FailureCause::Server, RetryAdvice::No, "a\nb\u{1b}[31m ");
        assert_eq!(error.message, "a b [31m");
        let long = CallError::new(FailureCause::Server, RetryAdvice::No, "é".repeat(10_000));
        assert!(long.message.len() <= CallError::MESSAGE_BYTES_MAX);
        assert!(long.message.ends_with('…'));
    }

    #[test]
    fn a_record_names_the_status() {
        let error = CallError::new(FailureCause::Overloaded, RetryAdvice::Transient, "busy").with_status(503);
        assert_eq!(error.to_failed_call(Timestamp::UNIX_EPOCH).message, "HTTP 503: busy");
    }

    #[test]
    fn who_says_nothing_is_named() {
        let error = |cause, status, message: &str| {
            let error = CallError::new(cause, RetryAdvice::No, message).with_status(status);
            error.asked_at("http://h/v1/chat/completions").in_words()
        };
        assert_eq!(
            error(FailureCause::Server, 500, " "),
            "HTTP 500 from http://h/v1/chat/completions, without a message"
        );
        assert_eq!(
            error(FailureCause::BadRequest, 404, "Not Found"),
            "HTTP 404 from http://h/v1/chat/completions: Not Found"
        );
        assert_eq!(error(FailureCause::BadRequest, 400, "top_p"), "HTTP 400: top_p");
        assert_eq!(error(FailureCause::ModelNotFound, 404, "no such model"), "HTTP 404: no such model");
    }
}

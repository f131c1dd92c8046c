//! Why a call has no answer.

use domain::dialogue::FailedCall;
use domain::{FailureCause, RetryAdvice};
use jiff::Timestamp;

/// One call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}: {}", self.told())]
pub struct CallError {
    /// Why, as a closed word.
    pub cause: FailureCause,
    /// What the server or the network said: one line, at most [`CallError::MESSAGE_BYTES_MAX`] bytes, no key.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retry: RetryAdvice,
    /// The HTTP status, where the server got as far as sending one.
    pub status: Option<u16>,
    /// Who sent that status, where the message alone does not tell what is wrong.
    pub place: Option<String>,
}

impl CallError {
    /// The longest message kept, in bytes: enough for every known server message, too short for a web page.
    pub const MESSAGE_BYTES_MAX: usize = 500;

    /// An error without a status. The message is shortened and freed of control characters, because it ends
    /// in logs and on terminals and may come from a stranger. Keys must be scrubbed before (see
    /// [`crate::secret::Secret::scrub`]): a shortened key could no longer be found.
    pub fn new(cause: FailureCause, retry: RetryAdvice, message: impl AsRef<str>) -> Self {
        Self { cause, message: one_line(message.as_ref()), retry, status: None, place: None }
    }

    /// The same with the HTTP status that came with it.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// The same with the address that was asked, where it is part of what is wrong: the server said nothing, or knows no
    /// such route.
    pub fn asked_at(mut self, url: &str) -> Self {
        let no_route = matches!(self.status, Some(404 | 405)) && self.cause == FailureCause::BadRequest;
        if self.message.is_empty() || no_route {
            self.place = Some(one_line(url));
        }
        self
    }

    /// Status, address and message as far as they are there: what records and people are told.
    pub fn told(&self) -> String {
        let status = self.status.map(|status| format!("HTTP {status}"));
        let place = self.place.as_ref().map(|place| format!("from {place}"));
        let head = [status, place].into_iter().flatten().collect::<Vec<_>>().join(" ");
        match (head.as_str(), self.message.as_str()) {
            ("", message) => message.to_owned(),
            (head, "") => format!("{head}, without a message"),
            (head, message) => format!("{head}: {message}"),
        }
    }

    /// The same, saying which part of the work it is about, such as a route or one of several inputs.
    pub(crate) fn about(self, part: &str) -> Self {
        Self { message: one_line(&format!("{part}: {}", self.message)), ..self }
    }

    /// Whether another attempt is allowed at all.
    pub fn is_retryable(&self) -> bool {
        self.retry != RetryAdvice::No
    }

    /// What a record keeps of this attempt.
    pub fn to_failed_call(&self, at: Timestamp) -> FailedCall {
        FailedCall { at, cause: self.cause, message: self.told() }
    }
}

/// A connector that cannot be built from its configuration.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The endpoint is no HTTP address.
    #[error("endpoint `{endpoint}` cannot be used: {reason}")]
    Endpoint {
        /// As configured, without what might be a password.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A key holds characters that no HTTP header can carry.
    #[error("the key has characters that cannot be sent in an HTTP header (line breaks, perhaps)")]
    KeyCharacters,
    /// A key could not be found.
    #[error("key: {0}")]
    KeyMissing(String),
    /// The HTTP client could not be built; without certificate authorities on the machine, for one.
    #[error("cannot set up the HTTP client: {0}")]
    Client(String),
}

/// The text as one line of bounded length.
fn one_line(text: &str) -> String {
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
            error.asked_at("http://h/v1/chat/completions").told()
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

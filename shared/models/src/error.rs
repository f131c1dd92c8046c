//! Errors of model calls.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use domain::cut_text::ShortMessage;
use domain::dialogue::FailedCall;
use domain::{FailureCause, RetryAdvice, Usage};
use jiff::Timestamp;

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}: {}", self.in_words())]
pub struct CallError {
    pub cause: FailureCause,
    /// Message of the server or the network: one line, at most [`MESSAGE_BYTES_MAX`](domain::cut_text::MESSAGE_BYTES_MAX) bytes, without keys.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retry: RetryAdvice,
    /// The HTTP status, if the server sent one.
    pub status: Option<u16>,
    /// The address that was asked, if the message alone does not explain the error.
    pub place: Option<String>,
    /// What the server answered with a status of success, where that is no answer, or is thrown away.
    pub bought: Option<Box<Bought>>,
    /// How long until a quota that is used up is renewed, if the server says so.
    pub renewed_in: Option<Duration>,
}

/// What was paid for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bought {
    /// A number that stands for the answer: the next call that brings the same shows that a further one would, too. None
    /// where the server itself ended the generation, which says nothing about the question.
    pub digest: Option<u64>,
    /// Its tokens, as far as the server counted them.
    pub usage: Usage,
}

impl CallError {
    /// Maximum size of what [`brief`](Self::brief) says, in bytes.
    const BRIEF_BYTES_MAX: usize = 80;

    /// An error without a status. The message is shortened and stripped of control characters, because it is
    /// untrusted and ends up in logs and on terminals. What a server says is no such message: see `http::said`.
    pub fn new(cause: FailureCause, retry: RetryAdvice, message: impl AsRef<str>) -> Self {
        Self {
            cause,
            message: ShortMessage::from(message.as_ref()).0,
            retry,
            status: None,
            place: None,
            bought: None,
            renewed_in: None,
        }
    }

    /// Adds the HTTP status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds what was paid for nothing, unless the error says it already.
    pub(crate) fn for_nothing(mut self, answer: impl Hash, usage: Usage) -> Self {
        self.bought.get_or_insert_with(|| Box::new(Bought { digest: Some(digest(answer)), usage }));
        self
    }

    /// A generation that the server itself ended after so many tokens, as vLLM does when it is restarted.
    pub(crate) fn aborted(message: impl AsRef<str>, usage: Usage) -> Self {
        let bought = Some(Box::new(Bought { digest: None, usage }));
        Self { bought, ..Self::new(FailureCause::Aborted, RetryAdvice::Transient, message) }
    }

    /// The same, after an answer that took these tokens.
    pub fn in_vain(self, usage: Usage) -> Self {
        let said = self.message.clone();
        self.for_nothing(said, usage)
    }

    /// Adds when the quota is renewed.
    pub(crate) fn resetting_in(mut self, wait: Option<Duration>) -> Self {
        let at = wait.and_then(|wait| Some((wait, domain::machine::now().checked_add(wait).ok()?)));
        if let Some((wait, at)) = at {
            self.renewed_in = Some(wait);
            self.message = ShortMessage::from(&*format!("{}; renewed at {at:.0}", self.message)).0;
        }
        self
    }

    /// Adds the address that was asked, if it helps to explain the error: the server sent no message, or knows no
    /// such route.
    pub fn asked_at(mut self, url: &str) -> Self {
        let no_route = matches!(self.status, Some(404 | 405)) && self.cause == FailureCause::BadRequest;
        if self.message.is_empty() || no_route {
            self.place = Some(ShortMessage::from(url).0);
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

    /// The failure in a few words, none of them the server's: for lines that say what calls wait for.
    pub fn brief(&self) -> String {
        match (self.cause, self.status) {
            (cause, Some(status)) => format!("{cause} (HTTP {status})"),
            (FailureCause::Connection, None) => {
                // The last cause of a chain, without its number.
                let last = self.message.rsplit(": ").next().unwrap_or_default();
                let words = last.split(" (os error").next().unwrap_or_default().to_lowercase();
                domain::text::one_line(&words, Self::BRIEF_BYTES_MAX)
            }
            (cause, None) => cause.to_string(),
        }
    }

    /// Adds the part of the work that failed, such as a route or one of several inputs.
    pub(crate) fn about(self, part: &str) -> Self {
        Self { message: ShortMessage::from(&*format!("{part}: {}", self.message)).0, ..self }
    }

    /// The form in which a record stores this attempt.
    pub fn to_failed_call(&self, at: Timestamp) -> FailedCall {
        FailedCall {
            at,
            cause: self.cause,
            message: ShortMessage::from(&*self.in_words()).0,
            usage: self.bought.as_ref().map_or_else(Usage::default, |bought| bought.usage),
        }
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

/// The text without what differs between messages that say the same: numbers, words with digits in them, quoted parts.
pub fn blanked(text: &str) -> String {
    let mut blank = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        if matches!(first, '"' | '\'' | '`')
            && let Some(end) = after.find(first)
        {
            blank.push_str("''");
            rest = &after[end + first.len_utf8()..];
        } else if first.is_alphanumeric() {
            // Also an apostrophe within a word, which is no quote, and all of a number such as a UUID, whose parts may lack digits.
            let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'' | '.' | '-');
            let end = rest.find(|c: char| !is_inner(c)).unwrap_or(rest.len());
            let (word, beyond) = rest.split_at(end);
            blank.push_str(if word.contains(|c: char| c.is_numeric()) { "#" } else { word });
            rest = beyond;
        } else {
            blank.push(first);
            rest = after;
        }
    }
    blank
}

/// A number that stands for a value within this process.
fn digest(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use domain::cut_text::MESSAGE_BYTES_MAX;

    use super::*;

    #[test]
    fn messages_are_one_short_line_without_control_characters() {
        let error = CallError::new(FailureCause::Server, RetryAdvice::No, "a\nb\u{1b}[31m ");
        assert_eq!(error.message, "a b [31m");
        let long = CallError::new(FailureCause::Server, RetryAdvice::No, "é".repeat(10_000));
        assert!(long.message.len() <= MESSAGE_BYTES_MAX);
        assert!(long.message.ends_with('…'));
    }

    #[test]
    fn messages_that_differ_in_numbers_and_quotes_say_the_same() {
        let input = |seed: u64| format!("`seed` {seed} isn't known: 'x{seed}' in req-a{seed}f, field 'a'");
        assert_eq!(blanked(&input(17)), blanked(&input(5_123_456_789)));
        let request = |id: &str| blanked(&format!("it is refused (request {id}); try it-self"));
        assert_eq!(
            request("0b1c-feed-42aa"),
            request("deaf-0000-beef"),
            "a part of a UUID may have letters alone"
        );
        assert_eq!(blanked("isn't 4.5 of \"a\" 'b"), "isn't # of '' 'b");
        assert_ne!(blanked("field seed"), blanked("field stop"));
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

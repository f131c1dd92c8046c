use std::time::Duration;

use reqwest::Response;
use tokio::time::{Instant, timeout};

use super::answer::{Absorbed, AnswerBuilder};
use super::errors::Rejected;
use crate::chat::ChatReply;
use crate::deadline::CallClock;
use crate::error::CallError;
use crate::http::broken_body;
use crate::progress::Progress;
use crate::secret::Secret;
use crate::sse::{EventTooLarge, SseParser};
use domain::{FailureCause, RetryAdvice};

/// How long the end of a stream may take after its last event, in milliseconds. Reading to the end frees the
/// connection for reuse; one that lingers is dropped.
const END_MILLISECONDS_MAX: u64 = 100;

/// The events so far.
#[derive(Debug, Default)]
struct PartialReply {
    answer: AnswerBuilder,
    /// A token arrived since this was last cleared.
    token: bool,
    /// Nothing more is needed.
    done: bool,
}

impl PartialReply {
    fn event(&mut self, data: &[u8], key: Option<&Secret>) -> Result<(), Rejected> {
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        match self.answer.absorb(data, key)? {
            Absorbed::Token => self.token = true,
            Absorbed::Other => {}
            Absorbed::Enough => self.done = true,
        }
        Ok(())
    }
}

/// Reads events that come in two pieces as a server's answer would be read; whether it is complete.
#[cfg(feature = "test-support")]
pub fn read_as_events(bytes: &[u8], cut: usize) -> bool {
    let (mut reading, mut parser) = (PartialReply::default(), SseParser::default());
    let (first, second) = bytes.split_at(cut.min(bytes.len()));
    for chunk in [first, second] {
        if parser.push(chunk, |data| reading.event(data, None)).is_err() {
            return false;
        }
    }
    let ended = parser.finish(|data| reading.event(data, None)).is_ok();
    let complete = ended && (reading.done || reading.answer.is_finished());
    let _ = reading.answer.finish();
    complete
}

/// Reads to the end, at most until the clock's limit.
///
/// The answer counts if a finish reason or `[DONE]` arrived. A stream that just ends means that the server stopped,
/// and its partial answer must never be scored.
pub(super) async fn read(
    mut response: Response,
    mut clock: CallClock,
    key: Option<&Secret>,
    progress: &Progress,
) -> Result<ChatReply, Rejected> {
    let mut parser = SseParser::default();
    let mut reading = PartialReply::default();
    let broken: CallError = loop {
        let chunk = match clock.wait(response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => {
                parser.finish(|data| reading.event(data, key))?;
                break ended_early();
            }
            Ok(Err(error)) => break broken_body(error),
            Err(timeout) => break timeout,
        };
        parser.push(&chunk, |data| reading.event(data, key))?;
        // Keep-alive comments are not progress.
        if std::mem::take(&mut reading.token) {
            if clock.first_token().is_none() {
                progress.token();
            }
            clock.token(Instant::now());
        }
        if reading.done {
            // The last bytes have arrived or are on their way.
            let _ = timeout(Duration::from_millis(END_MILLISECONDS_MAX), response.chunk()).await;
            return Ok(ChatReply { first_token: clock.first_token(), ..reading.answer.finish() });
        }
    };
    if reading.done || reading.answer.is_finished() {
        Ok(ChatReply { first_token: clock.first_token(), ..reading.answer.finish() })
    } else {
        Err(broken.into())
    }
}

fn ended_early() -> CallError {
    let message = "the stream ended without a finish reason and without [DONE]";
    CallError::new(FailureCause::Aborted, RetryAdvice::Transient, message)
}

impl From<EventTooLarge> for Rejected {
    fn from(error: EventTooLarge) -> Self {
        CallError::new(FailureCause::Server, RetryAdvice::No, error.to_string()).into()
    }
}

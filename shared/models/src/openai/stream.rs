//! Reads an answer in whatever form it comes.

use std::time::Duration;

use domain::{FailureCause, RetryAdvice};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use tokio::time::{Instant, timeout};

use super::answer::{Absorbed, AnswerBuilder, Understanding, is_piece, read_whole};
use crate::body::{BODY_BYTES_MAX, ResponseBody};
use crate::chat::ChatReply;
use crate::deadline::CallClock;
use crate::error::CallError;
use crate::http;
use crate::progress::Progress;
use crate::quirks::Remedy;
use crate::refusals::Rejected;
use crate::secret::Secret;
use crate::sse::{DONE, ERROR_EVENT, EventTooLarge, SseEvent, SseParser};

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
    fn event(&mut self, event: SseEvent<'_>, key: Option<&Secret>) -> Result<(), Rejected> {
        let data = event.data.trim_ascii();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == DONE {
            self.done = true;
            return Ok(());
        }
        // Gateways keep connections alive by words, numbers and lists of nothing.
        if event.name != ERROR_EVENT && !data.starts_with(b"{") && !is_list_of_something(data) {
            return Ok(());
        }
        let absorbed = match event.name {
            ERROR_EVENT => self.answer.refused(data, key),
            _ if data.starts_with(b"[") => self.answer.refused(data, key),
            b"" | b"message" => self.answer.absorb(data, key),
            // Gateways tell of their own doings in events of their own names; some servers name all events.
            _ if !is_piece(data) => return Ok(()),
            _ => self.answer.absorb(data, key),
        };
        match absorbed.map_err(|rejected| self.answer.bought(rejected))? {
            Absorbed::Token => self.token = true,
            Absorbed::Other => {}
            Absorbed::Enough => self.done = true,
        }
        Ok(())
    }
}

/// Whether this is a list that is not empty: one gateway puts errors into a list of one.
fn is_list_of_something(data: &[u8]) -> bool {
    data.strip_prefix(b"[").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{"))
}

/// Reads events that come in two pieces as a server's answer would be read; whether it is complete.
#[cfg(feature = "test-support")]
pub fn read_as_events(bytes: &[u8], cut: usize) -> bool {
    let (mut reading, mut parser) = (PartialReply::default(), SseParser::default());
    let (first, second) = bytes.split_at(cut.min(bytes.len()));
    for chunk in [first, second] {
        if parser.push(chunk, |event| reading.event(event, None)).is_err() {
            return false;
        }
    }
    let ended = parser.finish(|event| reading.event(event, None)).is_ok();
    let complete = ended && (reading.done || reading.answer.is_closed());
    reading.answer.finish(&Understanding::default()).is_ok() && complete
}

/// Reads to the end, at most until the clock's limit.
///
/// Some servers send a stream under the name of a whole answer, and the other way round, so the first byte decides.
pub(super) async fn read(
    response: Response,
    clock: CallClock,
    said: &Understanding<'_>,
    progress: &Progress,
) -> Result<ChatReply, Rejected> {
    let (is_named_stream, status) = (is_event_stream(&response), response.status().as_u16());
    let mut body = ResponseBody::of(response);
    let first = loop {
        match clock.wait(body.chunk()).await?? {
            Some(chunk) if chunk.trim_ascii().is_empty() => {}
            Some(chunk) => break chunk,
            None if is_named_stream => return Err(ended_early().into()),
            None => return read_whole(&[], said),
        }
    };
    let is_stream = match first.trim_ascii_start().first() {
        Some(b'{' | b'[') => false,
        // Comments and the names of fields; U+FEFF.
        Some(b':' | b'd' | b'e' | b'i' | b'r' | 0xef) => true,
        _ => is_named_stream,
    };
    if is_stream {
        return read_events(body, first, clock, said, progress).await;
    }
    let body = clock.wait(body.rest_of(first, BODY_BYTES_MAX)).await??;
    read_whole(&http::whole(body, status)?, said)
}

/// Reads the events of a stream.
///
/// The answer counts if a finish reason, `[DONE]` or the final token counts arrived. A stream that just ends means that the
/// server stopped, and its partial answer must never be scored.
async fn read_events(
    mut body: ResponseBody,
    first: bytes::Bytes,
    mut clock: CallClock,
    said: &Understanding<'_>,
    progress: &Progress,
) -> Result<ChatReply, Rejected> {
    let mut parser = SseParser::default();
    let mut reading = PartialReply::default();
    let mut chunk = first;
    let broken: Rejected = loop {
        parser.push(&chunk, |event| reading.event(event, said.key))?;
        // Keep-alive comments and empty pieces are not progress.
        if std::mem::take(&mut reading.token) {
            if clock.first_token().is_none() {
                progress.token();
            }
            clock.token(Instant::now());
        }
        if reading.done {
            // The last bytes have arrived or are on their way.
            let _ = timeout(Duration::from_millis(END_MILLISECONDS_MAX), body.chunk()).await;
            break ended_early().into();
        }
        chunk = match clock.wait(body.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => {
                parser.finish(|event| reading.event(event, said.key))?;
                reading.done |= reading.answer.is_closed();
                break reading.answer.bought(ended_early().into());
            }
            Ok(Err(error)) | Err(error) => break error.into(),
        };
    };
    if reading.done || reading.answer.is_finished() {
        Ok(ChatReply { first_token: clock.first_token(), ..reading.answer.finish(said)? })
    } else {
        let is_mute = broken.error.cause == FailureCause::Aborted && clock.first_token().is_none();
        Err(Rejected { remedy: broken.remedy.or(is_mute.then_some(Remedy::Mute)), ..broken })
    }
}

fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
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

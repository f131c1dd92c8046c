//! Sends spans to a collector: they are gathered in one buffer, which is sent when it is full or old enough.
//!
//! Adding a span never waits for the network. What cannot be buffered or sent is dropped and counted; the first failure
//! in a row is logged.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::counter;
use reqwest::header::LOCATION;
use reqwest::{Client, Response, Url};
use tokio::sync::{Notify, oneshot};

use super::{DROPPED_SPANS, SampleShare, Service, Span, otlp};

/// Bytes of spans at which they are sent without waiting for more.
const BATCH_BYTES: usize = 256 << 10;

/// Longest time that a span waits for others.
const BATCH_EVERY: Duration = Duration::from_secs(1);

/// Bytes of spans that wait to be sent; further spans are dropped and counted.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// Longest time of one request, and of the last one at the end.
pub const SEND_MAX: Duration = Duration::from_secs(5);

/// Where the spans of a process wait.
pub(super) struct Buffer {
    pub(super) sample: SampleShare,
    waiting: Mutex<Waiting>,
    /// Told when a batch is full.
    full: Notify,
}

#[derive(Default)]
struct Waiting {
    /// Spans one behind the other, as they are sent.
    bytes: Vec<u8>,
    spans: u64,
    /// Whether the exporter has ended; spans are dropped from then on.
    is_closed: bool,
}

impl Buffer {
    pub(super) fn new(sample: SampleShare) -> Self {
        Self { sample, waiting: Mutex::default(), full: Notify::new() }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a span; drops and counts it if [`WAITING_BYTES_MAX`] is reached. Wakes the sender once per batch, not per
    /// span.
    pub(super) fn add(&self, span: &Span<'_>) {
        let mut waiting = self.waiting();
        if waiting.is_closed {
            return;
        }
        let before = waiting.bytes.len();
        if before >= WAITING_BYTES_MAX {
            drop(waiting);
            return counter!(DROPPED_SPANS).increment(1);
        }
        otlp::span(&mut waiting.bytes, span, self.sample.state());
        waiting.spans += 1;
        if before < BATCH_BYTES && waiting.bytes.len() >= BATCH_BYTES {
            self.full.notify_one();
        }
    }

    /// Takes the waiting spans and leaves `empty` in their place.
    fn take(&self, empty: Vec<u8>) -> (Vec<u8>, u64) {
        let mut waiting = self.waiting();
        (std::mem::replace(&mut waiting.bytes, empty), std::mem::take(&mut waiting.spans))
    }

    fn is_full(&self) -> bool {
        self.waiting().bytes.len() >= BATCH_BYTES
    }
}

/// Sends what waits in a buffer.
pub(super) struct Exporter {
    buffer: Arc<Buffer>,
    client: Client,
    url: Url,
    resource: Vec<u8>,
    scope: Vec<u8>,
    /// Whether sending the last batch failed.
    fails: bool,
}

impl Exporter {
    pub(super) fn new(buffer: Arc<Buffer>, client: Client, url: Url, service: Service<'_>) -> Self {
        let (resource, scope) = (otlp::resource(service), otlp::scope(service.version));
        Self { buffer, client, url, resource, scope, fails: false }
    }

    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut empty = Vec::with_capacity(BATCH_BYTES);
        loop {
            // More may have come while the last batch was sent.
            if !self.buffer.is_full() {
                tokio::select! {
                    // Either somebody ends the traces, or nobody can any more.
                    _ = &mut stop => break,
                    () = self.buffer.full.notified() => {}
                    () = tokio::time::sleep(BATCH_EVERY) => {}
                }
            }
            let (mut bytes, spans) = self.buffer.take(empty);
            self.send(&bytes, spans).await;
            bytes.clear();
            empty = bytes;
        }
        self.buffer.waiting().is_closed = true;
        let (bytes, spans) = self.buffer.take(Vec::new());
        self.send(&bytes, spans).await;
    }

    /// Sends a batch. A batch that cannot be sent is lost; nothing depends on traces.
    async fn send(&mut self, bytes: &[u8], spans: u64) {
        if spans == 0 {
            return;
        }
        let body = otlp::request(&self.resource, &self.scope, bytes);
        let request = self.client.post(self.url.clone()).header("content-type", "application/x-protobuf");
        let refusal = match request.body(body).send().await {
            Ok(answer) => refusal(&answer),
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = &refusal {
            counter!(DROPPED_SPANS).increment(spans);
            if !self.fails {
                tracing::warn!(error, "traces cannot be sent; they are dropped until they can");
            }
        }
        self.fails = refusal.is_some();
    }
}

/// Why the collector did not accept the spans, if it did not. Of a redirect, which is not followed, only the host is
/// named.
fn refusal(answer: &Response) -> Option<String> {
    let status = answer.status();
    if status.is_success() {
        return None;
    }
    let location = answer.headers().get(LOCATION).filter(|_| status.is_redirection());
    let place = location.and_then(|location| answer.url().join(location.to_str().ok()?).ok());
    let leads = place.map(|place| format!(", a redirect to {}", place.origin().ascii_serialization()));
    Some(format!("{} answers {status}{}", answer.url(), leads.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::super::TraceId;
    use super::*;

    #[test]
    fn spans_beyond_the_bound_are_dropped_and_those_within_it_leave_together() {
        let buffer = Buffer::new(SampleShare::all());
        let span = Span::until_now(TraceId::of(&["r"]), "dialogue", None, SystemTime::now());
        buffer.add(&span);
        let each = buffer.waiting().bytes.len();
        let most = WAITING_BYTES_MAX.div_ceil(each);
        for _ in 0..most + 10 {
            buffer.add(&span);
        }
        assert!(buffer.is_full());
        let (bytes, spans) = buffer.take(Vec::new());
        assert_eq!((spans, bytes.len()), (most as u64, most * each));
        assert!(!buffer.is_full());
        buffer.waiting().is_closed = true;
        buffer.add(&span);
        assert_eq!(buffer.take(Vec::new()).1, 0);
    }
    #[test]
    fn an_answer_that_takes_nothing_is_told_and_a_redirect_with_its_host_alone() {
        let answer = |status: u16| {
            let place = "https://collector.invalid/v1/traces?token=1";
            let answer = axum::http::Response::builder().status(status).header(LOCATION, place);
            refusal(&answer.body("").unwrap().into())
        };
        assert_eq!(answer(200), None);
        let told = answer(302).unwrap();
        assert!(told.ends_with("answers 302 Found, a redirect to https://collector.invalid"), "{told}");
        assert!(answer(400).unwrap().ends_with("answers 400 Bad Request"));
    }
}

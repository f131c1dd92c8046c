//! Traces, sent over OTLP's HTTP protocol in protocol buffers (<https://opentelemetry.io/docs/specs/otlp/>); off unless a
//! process [starts](start) them.
//!
//! Ids are functions of names, so that processes agree on them without exchanging them: a coordinator and a worker give
//! an attempt at a dialogue the same trace id. Spans carry names, numbers and ids, never texts of prompts or answers.
//!
//! The encoder is our own: OpenTelemetry's crates draw ids at random and bring a second set of encoders.

mod export;
mod ids;
mod otlp;

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use reqwest::{Client, Url};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use export::SEND_MAX;
use export::{Buffer, Exporter};
pub use ids::{SampleError, SampleShare, SpanId, TraceId};

pub(crate) const DROPPED_SPANS: &str = "kgfleet_dropped_spans_total";

/// Attributes for which a span allocates room at once: as many as OpenTelemetry defines for calls of models.
const ATTRIBUTES: usize = 12;

/// A stretch of time within a trace.
#[derive(Clone, Debug)]
pub struct Span<'a> {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub name: &'a str,
    /// Whether the span is a call of another server.
    pub is_call: bool,
    pub start: SystemTime,
    pub end: SystemTime,
    pub attributes: Vec<(&'static str, TraceValue<'a>)>,
    /// Why it failed, in one word, if it did.
    pub error: Option<&'a str>,
}

/// What an attribute of a span says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TraceValue<'a> {
    Text(&'a str),
    Whole(i64),
    Fraction(f64),
    /// A list with this text as its only element.
    OneOf(&'a str),
}

impl<'a> From<&'a str> for TraceValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for TraceValue<'_> {
    fn from(whole: u64) -> Self {
        Self::Whole(i64::try_from(whole).unwrap_or(i64::MAX))
    }
}

impl From<u32> for TraceValue<'_> {
    fn from(whole: u32) -> Self {
        Self::Whole(whole.into())
    }
}

impl From<usize> for TraceValue<'_> {
    fn from(whole: usize) -> Self {
        Self::from(whole as u64)
    }
}

impl From<f64> for TraceValue<'_> {
    fn from(fraction: f64) -> Self {
        Self::Fraction(fraction)
    }
}

impl<'a> Span<'a> {
    /// A span that ends now.
    pub fn until_now(trace: TraceId, key: &'a str, parent: Option<&str>, start: SystemTime) -> Self {
        Self {
            trace,
            id: trace.span(key),
            parent: parent.map(|parent| trace.span(parent)),
            name: key,
            is_call: false,
            start,
            end: SystemTime::now(),
            attributes: Vec::new(),
            error: None,
        }
    }

    /// Adds an attribute.
    pub fn with(mut self, name: &'static str, value: impl Into<TraceValue<'a>>) -> Self {
        if self.attributes.is_empty() {
            self.attributes.reserve(ATTRIBUTES);
        }
        self.attributes.push((name, value.into()));
        self
    }
}

static BUFFER: OnceLock<Arc<Buffer>> = OnceLock::new();

/// Whether this process traces.
pub fn is_on() -> bool {
    BUFFER.get().is_some()
}

/// The id of the trace with this name; `None` if this process does not trace, or does not keep this trace.
pub fn kept(parts: &[&str]) -> Option<TraceId> {
    let buffer = BUFFER.get()?;
    Some(TraceId::of(parts)).filter(|trace| buffer.sample.keeps(*trace))
}

/// Sends a span in the background, if this process traces and there is room.
pub fn emit(span: &Span<'_>) {
    if let Some(buffer) = BUFFER.get() {
        buffer.add(span);
    }
}

/// The process that is traced, as traces name it.
#[derive(Clone, Copy, Debug)]
pub struct Service<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub instance: &'a str,
}

/// Traces cannot be sent to this address.
#[derive(Debug, thiserror::Error)]
#[error("{endpoint} is not an address for traces: {reason}; an example is http://127.0.0.1:4318")]
pub struct EndpointError {
    endpoint: String,
    reason: String,
}

/// The running exporter. [`end`](Self::end) it, or the last spans are lost.
pub struct Tracing {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// The address to which spans are posted, for the base address of a collector.
///
/// # Errors
/// It is not an HTTP address.
pub fn address(endpoint: &str) -> Result<Url, EndpointError> {
    let wrong = |reason: String| EndpointError { endpoint: endpoint.to_owned(), reason };
    let url = Url::parse(&format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .map_err(|error| wrong(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it is neither http nor https".to_owned()));
    }
    Ok(url)
}

/// Starts to send the spans of traces that `sample` keeps to this [address]. `client` must wait at most [`SEND_MAX`]
/// and follow no redirects. Only the first call in a process has an effect. Call it within a runtime of tokio.
pub fn start(url: Url, client: Client, sample: SampleShare, service: Service<'_>) -> Tracing {
    let buffer = Arc::new(Buffer::new(sample));
    // Where another one is running already, nobody adds to this one.
    let _ = BUFFER.set(Arc::clone(&buffer));
    let (stop, stopped) = oneshot::channel();
    Tracing { stop, task: tokio::spawn(Exporter::new(buffer, client, url, service).run(stopped)) }
}

impl Tracing {
    /// Sends the remaining spans; takes at most [`SEND_MAX`].
    pub async fn end(self) {
        // An error means that the task has ended.
        let _ = self.stop.send(());
        let _ = tokio::time::timeout(SEND_MAX, self.task).await;
    }
}

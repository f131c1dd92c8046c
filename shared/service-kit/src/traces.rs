//! Traces, sent over OTLP's HTTP protocol with JSON bodies (<https://opentelemetry.io/docs/specs/otlp/>); off unless a
//! process [starts](start) them.
//!
//! Ids are functions of what they are about, so that processes agree on them without telling each other: a coordinator
//! and a worker make the same trace of an attempt at a dialogue. Spans carry names, numbers and ids, never texts.
//!
//! Written by hand because this is all that is needed: OpenTelemetry's own crates draw ids at random, and bring a second
//! set of encoders.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use metrics::counter;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Spans that wait to be sent; further ones are dropped and counted.
const WAITING_MAX: usize = 8_192;

/// Spans of one request.
const BATCH_MAX: usize = 512;

/// Longest time that a span waits for others.
const BATCH_EVERY: Duration = Duration::from_secs(1);

/// Longest time of one request, and of the last ones at the end.
const SEND_MAX: Duration = Duration::from_secs(5);

pub(crate) const DROPPED_SPANS: &str = "kgfleet_dropped_spans_total";

/// Identifies a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// Identifies a span within its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// The trace of what these texts name.
    pub fn of(parts: &[&str]) -> Self {
        Self(digest(b"kgfleet trace", parts))
    }

    /// The span of this name in it; names that occur several times have a number in them.
    pub fn span(&self, name: &str) -> SpanId {
        SpanId(digest(&self.0, &[name]))
    }
}

/// The first bytes of a hash of texts, none of which can be taken for parts of another.
fn digest<const N: usize>(of: &[u8], parts: &[&str]) -> [u8; N] {
    let mut hash = Sha256::new();
    hash.update(of);
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let mut id = [0; N];
    id.copy_from_slice(&hash.finalize()[..N]);
    id
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl std::fmt::Display for TraceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// A stretch of time within a trace.
#[derive(Clone, Debug)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub name: String,
    /// Whether another server was asked.
    pub is_call: bool,
    pub start: SystemTime,
    pub end: SystemTime,
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed, in one word, if it did.
    pub error: Option<&'static str>,
}

impl Span {
    /// A span that ends now.
    pub fn until_now(trace: TraceId, key: &str, parent: Option<&str>, start: SystemTime) -> Self {
        Self {
            trace,
            id: trace.span(key),
            parent: parent.map(|parent| trace.span(parent)),
            name: key.to_owned(),
            is_call: false,
            start,
            end: SystemTime::now(),
            attributes: Vec::new(),
            error: None,
        }
    }

    /// With another attribute.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    fn json(&self) -> Value {
        let nanoseconds = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            since.as_nanos().to_string()
        };
        let mut span = json!({
            "traceId": hex(&self.trace.0),
            "spanId": hex(&self.id.0),
            "name": self.name,
            // Internal, or client.
            "kind": if self.is_call { 3 } else { 1 },
            "startTimeUnixNano": nanoseconds(self.start),
            "endTimeUnixNano": nanoseconds(self.end.max(self.start)),
            "attributes": attributes(&self.attributes),
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = hex(&parent.0).into();
        }
        if let Some(error) = self.error {
            span["status"] = json!({"code": 2, "message": error});
        }
        span
    }
}

fn attributes(list: &[(&'static str, Value)]) -> Value {
    let written = |value: &Value| match value {
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        // 64-bit numbers are texts in the JSON of protocol buffers.
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Bool(truth) => json!({"boolValue": truth}),
        Value::Array(values) => {
            let values: Vec<Value> = values.iter().map(|value| json!({"stringValue": value})).collect();
            json!({"arrayValue": {"values": values}})
        }
        other => json!({"stringValue": other}),
    };
    list.iter().map(|(key, value)| json!({"key": key, "value": written(value)})).collect()
}

static SPANS: OnceLock<mpsc::Sender<Span>> = OnceLock::new();

/// Whether this process traces.
pub fn is_on() -> bool {
    SPANS.get().is_some()
}

/// Sends a span in the background, if this process traces and there is room.
pub fn emit(span: Span) {
    if let Some(spans) = SPANS.get()
        && let Err(TrySendError::Full(_)) = spans.try_send(span)
    {
        counter!(DROPPED_SPANS).increment(1);
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

/// Sends the last spans when it is [ended](Self::end).
pub struct Tracing {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Starts to send spans to `ENDPOINT/v1/traces`. Only the first call in a process has an effect. Needs a runtime of tokio,
/// and a crypto provider for `https`.
///
/// # Errors
/// It is no address.
pub fn start(endpoint: &str, service: Service<'_>) -> Result<Tracing, EndpointError> {
    let wrong = |reason: String| EndpointError { endpoint: endpoint.to_owned(), reason };
    let url = reqwest::Url::parse(&format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .map_err(|error| wrong(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it is neither http nor https".to_owned()));
    }
    let mut client = reqwest::Client::builder().timeout(SEND_MAX);
    if url.scheme() == "http" {
        client = client.tls_certs_only([]);
    }
    let client = client.build().map_err(|error| wrong(error.to_string()))?;
    let (sender, spans) = mpsc::channel(WAITING_MAX);
    let (stop, stopped) = oneshot::channel();
    let resource = attributes(&[
        ("service.name", service.name.into()),
        ("service.version", service.version.into()),
        ("service.instance.id", service.instance.into()),
    ]);
    // Another one is running already: this one's channel closes, and its task ends.
    let _ = SPANS.set(sender);
    let exporter = Exporter { client, url, resource, scope: service.version.to_owned(), fails: false };
    Ok(Tracing { stop, task: tokio::spawn(exporter.run(spans, stopped)) })
}

impl Tracing {
    /// Sends what waits, within bounded time.
    pub async fn end(self) {
        // An error means that the task has ended.
        let _ = self.stop.send(());
        let _ = tokio::time::timeout(SEND_MAX, self.task).await;
    }
}

struct Exporter {
    client: reqwest::Client,
    url: reqwest::Url,
    resource: Value,
    scope: String,
    /// Whether the last batch was not taken.
    fails: bool,
}

impl Exporter {
    async fn run(mut self, mut spans: mpsc::Receiver<Span>, mut stop: oneshot::Receiver<()>) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                // Either somebody ends the traces, or nobody can any more.
                _ = &mut stop => break,
                got = spans.recv_many(&mut batch, BATCH_MAX) => if got == 0 { break },
            }
            // More come while this one waits for them.
            let full = async {
                while batch.len() < BATCH_MAX && spans.recv_many(&mut batch, BATCH_MAX).await > 0 {}
            };
            tokio::select! {
                _ = tokio::time::timeout(BATCH_EVERY, full) => {}
                _ = &mut stop => break,
            }
            self.send(std::mem::take(&mut batch)).await;
        }
        spans.close();
        while spans.recv_many(&mut batch, BATCH_MAX).await > 0 {}
        for batch in batch.chunks(BATCH_MAX) {
            self.send(batch.to_vec()).await;
        }
    }

    /// Sends a batch. One that is not taken is lost: traces are no record.
    async fn send(&mut self, batch: Vec<Span>) {
        let spans: Vec<Value> = batch.iter().map(Span::json).collect();
        let body = json!({"resourceSpans": [{
            "resource": {"attributes": self.resource},
            "scopeSpans": [{"scope": {"name": "kgfleet", "version": self.scope}, "spans": spans}],
        }]});
        let request = self.client.post(self.url.clone()).header("content-type", "application/json");
        let sent = request.body(body.to_string()).send().await.and_then(reqwest::Response::error_for_status);
        if let Err(error) = &sent {
            counter!(DROPPED_SPANS).increment(batch.len() as u64);
            if !self.fails {
                tracing::warn!(%error, "traces cannot be sent; they are dropped until they can");
            }
        }
        self.fails = sent.is_err();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_functions_of_what_they_are_about() {
        let trace = TraceId::of(&["run", "model"]);
        assert_eq!(trace, TraceId::of(&["run", "model"]));
        assert_ne!(trace, TraceId::of(&["runm", "odel"]));
        assert_ne!(trace.span("a"), trace.span("b"));
        assert_eq!(trace.to_string().len(), 32);
    }

    #[test]
    fn a_span_is_written_as_otlp_has_it() {
        let trace = TraceId::of(&["run"]);
        let start = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_500_000_000_000_000_001);
        let mut span = Span::until_now(trace, "chat", Some("dialogue"), start)
            .with("gen_ai.usage.input_tokens", 12)
            .with("gen_ai.response.finish_reasons", vec!["stop"])
            .with("share", 0.5);
        (span.end, span.error) = (start + Duration::from_nanos(5), Some("timeout"));
        assert_eq!(
            span.json(),
            json!({
                "traceId": trace.to_string(), "spanId": hex(&trace.span("chat").0),
                "parentSpanId": hex(&trace.span("dialogue").0), "name": "chat", "kind": 1,
                "startTimeUnixNano": "1500000000000000001", "endTimeUnixNano": "1500000000000000006",
                "attributes": [
                    {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "12"}},
                    {"key": "gen_ai.response.finish_reasons",
                     "value": {"arrayValue": {"values": [{"stringValue": "stop"}]}}},
                    {"key": "share", "value": {"doubleValue": 0.5}},
                ],
                "status": {"code": 2, "message": "timeout"},
            })
        );
    }
}

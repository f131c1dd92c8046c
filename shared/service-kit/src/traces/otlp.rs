//! Encodes spans as OTLP's protocol buffers (<https://github.com/open-telemetry/opentelemetry-proto>,
//! `trace/v1/trace.proto`).
//!
//! Spans are written straight into the buffer that is sent, without building messages in memory first.

use std::time::SystemTime;

use super::{Service, Span, TraceValue};

/// Wire types of protocol buffers: the lowest three bits of a tag.
const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const BYTES: u8 = 2;

/// Kinds of spans.
const INTERNAL: u64 = 1;
const CLIENT: u64 = 3;
/// The status of a span that failed.
const FAILED: u64 = 2;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes the tag of a field. All field numbers here are below 16, so that a tag is one byte.
fn tag(out: &mut Vec<u8>, field: u8, kind: u8) {
    out.push(field << 3 | kind);
}

fn number(out: &mut Vec<u8>, field: u8, value: u64) {
    tag(out, field, VARINT);
    varint(out, value);
}

fn fixed(out: &mut Vec<u8>, field: u8, value: u64) {
    tag(out, field, FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    tag(out, field, BYTES);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Writes a nested message; its length is filled in afterwards.
fn message(out: &mut Vec<u8>, field: u8, write: impl FnOnce(&mut Vec<u8>)) {
    tag(out, field, BYTES);
    out.push(0);
    let begin = out.len();
    write(out);
    let mut length = (out.len() - begin) as u64;
    // One byte holds most lengths; for others the content moves on.
    let mut at = begin - 1;
    while length >= 0x80 {
        out[at] = length as u8 | 0x80;
        length >>= 7;
        at += 1;
        out.insert(at, 0);
    }
    out[at] = length as u8;
}

fn attribute(out: &mut Vec<u8>, field: u8, key: &str, value: TraceValue<'_>) {
    message(out, field, |out| {
        bytes(out, 1, key.as_bytes());
        message(out, 2, |out| match value {
            TraceValue::Text(text) => bytes(out, 1, text.as_bytes()),
            // Negative ones as their two's complement.
            TraceValue::Whole(whole) => number(out, 3, whole as u64),
            TraceValue::Fraction(fraction) => fixed(out, 4, fraction.to_bits()),
            TraceValue::OneOf(text) => {
                message(out, 5, |out| message(out, 1, |out| bytes(out, 1, text.as_bytes())));
            }
        });
    });
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Until the year 2554.
    since.as_nanos() as u64
}

/// Appends a span, as a field of its scope.
pub(super) fn span(out: &mut Vec<u8>, span: &Span<'_>, state: &str) {
    message(out, 2, |out| {
        bytes(out, 1, &span.trace.0);
        bytes(out, 2, &span.id.0);
        if !state.is_empty() {
            bytes(out, 3, state.as_bytes());
        }
        if let Some(parent) = span.parent {
            bytes(out, 4, &parent.0);
        }
        bytes(out, 5, span.name.as_bytes());
        number(out, 6, if span.is_call { CLIENT } else { INTERNAL });
        fixed(out, 7, nanoseconds(span.start));
        fixed(out, 8, nanoseconds(span.end.max(span.start)));
        for (key, value) in &span.attributes {
            attribute(out, 9, key, *value);
        }
        if let Some(error) = span.error {
            message(out, 15, |out| {
                bytes(out, 2, error.as_bytes());
                number(out, 3, FAILED);
            });
        }
    });
}

/// The process as a resource, as a field of its spans.
pub(super) fn resource(service: Service<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message(&mut out, 1, |out| {
        for (key, value) in [
            ("service.name", service.name),
            ("service.version", service.version),
            ("service.instance.id", service.instance),
        ] {
            attribute(out, 1, key, TraceValue::Text(value));
        }
    });
    out
}

/// The scope of spans, as a field beside them.
pub(super) fn scope(version: &str) -> Vec<u8> {
    let mut out = Vec::new();
    message(&mut out, 1, |out| {
        bytes(out, 1, b"kgfleet");
        bytes(out, 2, version.as_bytes());
    });
    out
}

/// The body of a request with these spans.
pub(super) fn request(resource: &[u8], scope: &[u8], spans: &[u8]) -> Vec<u8> {
    /// Bytes of the longest tag with a length.
    const HEAD: usize = 1 + 10;
    // Of inside out: the scope with its spans, and before it the resource.
    let of_scope = scope.len() + spans.len();
    let mut head = Vec::with_capacity(HEAD);
    tag(&mut head, 2, BYTES);
    varint(&mut head, of_scope as u64);
    let mut out = Vec::with_capacity(HEAD + resource.len() + head.len() + of_scope);
    tag(&mut out, 1, BYTES);
    varint(&mut out, (resource.len() + head.len() + of_scope) as u64);
    for part in [resource, &head, scope, spans] {
        out.extend_from_slice(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{SpanId, TraceId};
    use super::*;

    /// The same request, written by OpenTelemetry's own code: `opentelemetry-proto` of PyPI.
    const WRITTEN_BY_OTHERS: &[u8] = include_bytes!("../../testdata/request.otlp");

    fn ids(from: u8) -> [u8; 8] {
        std::array::from_fn(|at| from + at as u8)
    }

    #[test]
    fn a_request_is_written_as_opentelemetry_writes_it() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_500_000_000_000_000_001);
        let long = "x".repeat(200);
        let trace = TraceId(std::array::from_fn(|at| at as u8));
        let mut chat = Span {
            trace,
            id: SpanId(ids(16)),
            parent: Some(SpanId(ids(24))),
            name: "chat m",
            is_call: true,
            start,
            end: start + Duration::from_nanos(5),
            attributes: Vec::new(),
            error: Some("timeout"),
        };
        for (key, value) in [
            ("gen_ai.usage.input_tokens", TraceValue::Whole(300)),
            ("negative", TraceValue::Whole(-1)),
            ("gen_ai.response.finish_reasons", TraceValue::OneOf("stop")),
            ("share", TraceValue::Fraction(0.5)),
            ("long", TraceValue::Text(&long)),
        ] {
            chat = chat.with(key, value);
        }
        let start = SystemTime::UNIX_EPOCH + Duration::from_nanos(1);
        // It ends before it starts: a clock was set.
        let store = Span {
            id: SpanId(ids(32)),
            parent: None,
            name: "store",
            is_call: false,
            start,
            end: SystemTime::UNIX_EPOCH,
            attributes: Vec::new(),
            error: None,
            ..chat.clone()
        };
        let mut spans = Vec::new();
        span(&mut spans, &chat, "ot=th:8");
        span(&mut spans, &store, "");
        let service = Service { name: "kgfleet-worker", version: "1.2.3", instance: "w" };
        assert_eq!(request(&resource(service), &scope(service.version), &spans), WRITTEN_BY_OTHERS);
    }

    #[test]
    fn lengths_of_several_bytes_are_right() {
        for length in [0, 127, 128, 16_383, 16_384, 40_000] {
            let (mut by_closure, mut by_length) = (Vec::new(), Vec::new());
            let content = vec![7; length];
            message(&mut by_closure, 2, |out| out.extend_from_slice(&content));
            bytes(&mut by_length, 2, &content);
            assert!(by_closure == by_length, "{length}");
        }
    }
}

//! Ids of traces and spans, and which traces are kept.
//!
//! Ids are hashes of names, so that processes agree on ids, and on which traces to keep, without exchanging them.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Identifies a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub(super) [u8; 16]);

/// Identifies a span within its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub(super) [u8; 8]);

impl TraceId {
    /// The trace with this name. The parts are hashed with their lengths: `["ab"]` and `["a", "b"]` differ.
    pub fn of(parts: &[&str]) -> Self {
        let mut hash = Sha256::new_with_prefix(b"kgfleet trace");
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let mut id = [0; 16];
        id.copy_from_slice(&hash.finalize()[..16]);
        Self(id)
    }

    /// The span with this name in the trace. A name that occurs several times must contain a number.
    pub fn span(&self, name: &str) -> SpanId {
        // FNV-1a from a place that is already random: spans are many, and need to differ within their trace only.
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        let begin = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let id =
            name.bytes().fold(begin, |id, byte| (id ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        // Zero means that there is no span.
        SpanId(id.max(1).to_be_bytes())
    }

    /// How a request names the span of this trace that it belongs to, in the header `traceparent` of W3C's Trace Context
    /// (<https://www.w3.org/TR/trace-context/>). The trace is kept, or nobody would ask.
    pub fn parent(&self, span: &str) -> String {
        format!("00-{self}-{:016x}-01", u64::from_be_bytes(self.span(span).0))
    }

    /// The random number of OpenTelemetry's sampling: the last 56 bits.
    fn randomness(self) -> u64 {
        let [.., a, b, c, d, e, f, g] = self.0;
        u64::from_be_bytes([0, a, b, c, d, e, f, g])
    }
}

impl std::fmt::Display for TraceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The share of traces that is kept, by the rule of OpenTelemetry's probability sampling
/// (<https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/>): a trace is kept where the last 56
/// bits of its id, as a number, are not below a threshold. So all processes with the same share keep the same traces,
/// and one with a smaller share keeps some of those of the others.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleShare {
    threshold: u64,
    state: String,
}

/// A share of traces that is not from 0 to 1.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not a share of traces: from 0 (none) to 1 (all)")]
pub struct SampleError(f64);

/// How many numbers 56 bits have.
const NUMBERS: u64 = 1 << 56;

impl SampleShare {
    /// All traces.
    pub fn all() -> Self {
        Self { threshold: 0, state: String::new() }
    }

    /// A share from 0 to 1.
    ///
    /// # Errors
    /// It is outside of that.
    pub fn of(share: f64) -> Result<Self, SampleError> {
        if !(0.0..=1.0).contains(&share) {
            return Err(SampleError(share));
        }
        // Between 0 and 2^56, which a float holds.
        let threshold = ((1.0 - share) * NUMBERS as f64).round() as u64;
        let mut state = String::new();
        if threshold > 0 && threshold < NUMBERS {
            let digits = format!("{threshold:014x}");
            // Writing into a text does not fail.
            let _ = write!(state, "ot=th:{}", digits.trim_end_matches('0'));
        }
        Ok(Self { threshold, state })
    }

    /// Whether a trace is kept.
    pub fn keeps(&self, trace: TraceId) -> bool {
        trace.randomness() >= self.threshold
    }

    /// The `tracestate` of each span. A collector computes from it how many traces a kept one stands for. Empty if all
    /// are kept.
    pub(super) fn state(&self) -> &str {
        &self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_the_span_that_they_belong_to() {
        let trace = TraceId::of(&["run", "record"]);
        let parent = trace.parent("chat 1");
        let parts: Vec<&str> = parent.split('-').collect();
        let SpanId(span) = trace.span("chat 1");
        let span: String = span.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(parts, ["00", trace.to_string().as_str(), span.as_str(), "01"]);
    }

    #[test]
    fn ids_are_functions_of_what_they_are_about() {
        let trace = TraceId::of(&["run", "model"]);
        assert_eq!(trace, TraceId::of(&["run", "model"]));
        assert_ne!(trace, TraceId::of(&["runm", "odel"]));
        assert_eq!(trace.to_string().len(), 32);
        let names =
            ["dialogue", "queue wait", "deliver", "store", "chat 1", "chat 2", "evaluate 1", "evaluate 2"];
        let ids: std::collections::HashSet<SpanId> = names.iter().map(|name| trace.span(name)).collect();
        assert_eq!(ids.len(), names.len());
        assert_ne!(trace.span("store"), TraceId::of(&["run"]).span("store"));
    }

    #[test]
    fn a_share_keeps_about_that_many_traces_and_a_smaller_one_some_of_them() {
        let traces: Vec<TraceId> = (0..4_000).map(|n| TraceId::of(&[&format!("record {n}")])).collect();
        let kept = |share: f64| -> Vec<TraceId> {
            let sample = SampleShare::of(share).unwrap();
            traces.iter().copied().filter(|trace| sample.keeps(*trace)).collect()
        };
        assert_eq!((kept(0.0).len(), kept(1.0).len()), (0, traces.len()));
        let (quarter, tenth) = (kept(0.25), kept(0.1));
        // Five standard deviations.
        assert!((865..=1_135).contains(&quarter.len()), "{}", quarter.len());
        assert!(tenth.iter().all(|trace| quarter.contains(trace)));
    }

    #[test]
    fn the_threshold_is_told_as_opentelemetry_writes_it() {
        let state = |share: f64| SampleShare::of(share).unwrap().state().to_owned();
        assert_eq!(
            (state(1.0), state(0.5), state(0.25)),
            (String::new(), "ot=th:8".into(), "ot=th:c".into())
        );
        // The example of the specification: a share of 1 %.
        assert!(state(0.01).starts_with("ot=th:fd70a3d70a3d7"), "{}", state(0.01));
        for wrong in [-0.1, 1.1, f64::NAN] {
            assert!(SampleShare::of(wrong).is_err(), "{wrong}");
        }
    }
}

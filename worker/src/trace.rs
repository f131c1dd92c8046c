//! The trace of one attempt at a dialogue: waiting, rounds, evaluation, delivery. The coordinator adds spans to the
//! same trace, because it computes the same id from the names of run and record.

use std::time::SystemTime;

use domain::chat::FinishReason;
use domain::{FailureCause, RecordId, RunId, Sampling};
use models::{CallError, ChatReply, ModelIdentity};
use reqwest::Url;
use service_kit::traces::{self, Span, TraceId, TraceValue};

/// The whole attempt, from the grant of its unit to the receipt for its record.
const DIALOGUE: &str = "dialogue";

/// The delivery of the record.
const DELIVER: &str = "deliver";

/// A traced attempt.
#[derive(Clone, Copy, Debug)]
pub struct DialogueTrace {
    trace: TraceId,
    granted: SystemTime,
}

/// A traced attempt whose record is on its way.
#[derive(Debug)]
pub(crate) struct Delivering {
    attempt: DialogueTrace,
    since: SystemTime,
    outcome: Option<FailureCause>,
}

/// What a round asked, and when.
pub(crate) struct RoundAsked<'a> {
    /// Number of the round, from 1.
    pub(crate) round: usize,
    pub(crate) model: &'a ModelIdentity,
    pub(crate) sampling: &'a Sampling,
    pub(crate) since: SystemTime,
    /// Calls that failed before this one, and were repeated.
    pub(crate) retries: usize,
}

impl DialogueTrace {
    /// The attempt begins; `None` where it is not traced. Its unit was granted at `granted`.
    pub(crate) fn begin(run: &RunId, record: &RecordId, granted: Option<SystemTime>) -> Option<Self> {
        let trace = traces::kept(&[run.as_str(), record.as_str()])?;
        let granted = granted.unwrap_or_else(SystemTime::now);
        traces::emit(&Span::until_now(trace, "queue wait", Some(DIALOGUE), granted));
        Some(Self { trace, granted })
    }

    /// The trace, for logs.
    pub(crate) fn id(&self) -> TraceId {
        self.trace
    }

    /// How a call of a round names the span that it belongs to, for servers that trace, too.
    pub(crate) fn parent_of_call(&self, round: usize) -> String {
        self.trace.parent(&chat(round))
    }

    /// A prompt was answered, or could not be. Named as OpenTelemetry names calls of language models.
    pub(crate) fn asked(&self, asked: &RoundAsked<'_>, answer: Result<&ChatReply, &CallError>) {
        let RoundAsked { round, model, sampling, since, retries } = asked;
        let (key, name) = (chat(*round), format!("chat {}", model.requested));
        let mut span = Span::until_now(self.trace, &key, Some(DIALOGUE), *since)
            .with("gen_ai.operation.name", "chat")
            .with("gen_ai.provider.name", model.connector)
            .with("gen_ai.request.model", model.requested.as_str())
            .with("kgfleet.round", *round)
            .with("kgfleet.retries", *retries);
        (span.name, span.is_call) = (&name, true);
        let address = model.endpoint.as_deref().and_then(|endpoint| Url::parse(endpoint).ok());
        if let Some(host) = address.as_ref().and_then(Url::host_str) {
            span = span.with("server.address", host);
        }
        if let Some(port) = address.as_ref().and_then(Url::port_or_known_default) {
            span = span.with("server.port", u32::from(port));
        }
        if let Some(max_tokens) = sampling.max_tokens {
            span = span.with("gen_ai.request.max_tokens", max_tokens);
        }
        if let Some(temperature) = sampling.temperature {
            span = span.with("gen_ai.request.temperature", temperature);
        }
        match answer {
            Ok(reply) => {
                let usage = &reply.answer.usage;
                for (name, value) in [
                    ("gen_ai.usage.input_tokens", usage.prompt_tokens),
                    ("gen_ai.usage.output_tokens", usage.completion_tokens),
                ] {
                    if let Some(value) = value {
                        span = span.with(name, value);
                    }
                }
                if let Some(model) = &reply.reported_model {
                    span = span.with("gen_ai.response.model", model.as_str());
                }
                if let Some(reason) = &reply.answer.finish_reason {
                    span = span.with("gen_ai.response.finish_reasons", TraceValue::OneOf(word(reason)));
                }
            }
            Err(error) => {
                span.error = Some(error.cause.as_str());
                span = span.with("error.type", error.cause.as_str());
            }
        }
        traces::emit(&span);
    }

    /// An answer has its verdict.
    pub(crate) fn evaluated(&self, round: usize, class: &str, since: SystemTime, is_ours_to_blame: bool) {
        let key = format!("evaluate {round}");
        let mut span = Span::until_now(self.trace, &key, Some(DIALOGUE), since)
            .with("kgfleet.class", class)
            .with("kgfleet.round", round);
        span.name = "evaluate";
        span.error = is_ours_to_blame.then_some(FailureCause::EvaluatorFailed.as_str());
        traces::emit(&span);
    }

    /// The dialogue was stopped, and has no record.
    pub(crate) fn stopped(&self) {
        self.end(Some("stopped"));
    }

    /// The record is there.
    pub(crate) fn recorded(self, outcome: Option<FailureCause>) -> Delivering {
        Delivering { attempt: self, since: SystemTime::now(), outcome }
    }

    fn end(&self, error: Option<&'static str>) {
        let mut span = Span::until_now(self.trace, DIALOGUE, None, self.granted);
        span.error = error;
        traces::emit(&span);
    }
}

impl Delivering {
    /// The record has its receipt, or will never have one.
    pub(crate) fn received(&self, is_stored: bool) {
        let mut span = Span::until_now(self.attempt.trace, DELIVER, Some(DIALOGUE), self.since);
        span.error = (!is_stored).then_some("refused");
        traces::emit(&span);
        self.attempt.end(self.outcome.map(FailureCause::as_str));
    }
}

/// Names the span of a round.
fn chat(round: usize) -> String {
    format!("chat {round}")
}

fn word(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Repetition => "repetition",
        FinishReason::Other(word) => word,
    }
}

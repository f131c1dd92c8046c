//! Every metric of the worker.
//!
//! Labels are bounded by configurations (models, servers) and closed lists of words.

use std::time::Duration;

use domain::chat::Usage;
use domain::exchange::WorkerPhase;
use domain::{Answer, ErrorCode, FailureCause, Oddity, PromptKind};
use metrics::{counter, gauge, histogram};
use service_kit::metrics::Metrics;
use service_kit::metrics::frame::{self, Frame};
use tasks::{EvaluationStage, Limit, Verdict};

use crate::limiter::LimitReason;
use crate::vllm::Load;

mod table;

pub use table::DEFINITIONS;
use table::*;

/// What the metrics show of a server.
#[derive(Debug, Default)]
pub struct ServerSight {
    pub name: String,
    /// The model that it serves, or will serve; empty if that is not known.
    pub serves: String,
    /// Whether it answers; `None` if it is not polled.
    pub is_up: Option<bool>,
    /// Whether it serves another model under a known name.
    pub is_mistaken: bool,
    /// Dialogues in flight at most.
    pub limit: u32,
    pub in_flight: u32,
    /// Why the limit has its present value; `None` before the first dialogue.
    pub reason: Option<LimitReason>,
    pub load: Option<Load>,
}

/// Describes every metric, and sets counters that alerts watch to 0, so that their first increase is seen.
pub fn begin(metrics: &Metrics) {
    metrics.describe(DEFINITIONS);
    counter!(LOST_LEASES).increment(0);
    counter!(EVALUATORS_STARTED).increment(0);
    counter!(RECALLED).increment(0);
    for limit in Limit::ALL {
        counter!(LIMITS_HIT, "limit" => limit.as_str()).increment(0);
    }
    for limit in Limit::ALL.into_iter().map(Some).chain([None]) {
        let cause = limit.map_or(EXTERNAL, Limit::as_str);
        counter!(EVALUATOR_DEATHS, "cause" => cause).increment(0);
    }
    for outcome in ["stored", "refused"] {
        counter!(RECEIPTS, "outcome" => outcome).increment(0);
    }
}

/// What killed an evaluation process, where no answer can have done it.
const EXTERNAL: &str = "external";

pub(crate) fn dialogue_ended(model: &str, cause: Option<FailureCause>, took: Duration) {
    let outcome = cause.map_or("scored", FailureCause::as_str);
    counter!(DIALOGUES, "model" => model.to_owned(), "outcome" => outcome).increment(1);
    histogram!(DIALOGUE_SECONDS, "model" => model.to_owned()).record(took.as_secs_f64());
}

pub(crate) fn failed_calls(model: &str, server: &str, cause: FailureCause, calls: u64) {
    let (model, server) = (model.to_owned(), server.to_owned());
    counter!(FAILED_CALLS, "model" => model, "server" => server, "cause" => cause.as_str()).increment(calls);
}

/// A prompt was answered.
pub(crate) fn round_answered(
    (model, server): (&str, &str),
    kind: PromptKind,
    took: Duration,
    first_token: Option<Duration>,
    answer: &Answer,
) {
    counter!(ROUNDS, "model" => model.to_owned(), "kind" => kind.as_str()).increment(1);
    histogram!(ROUND_SECONDS, "server" => server.to_owned()).record(took.as_secs_f64());
    if let Some(first_token) = first_token {
        histogram!(FIRST_TOKEN_SECONDS, "server" => server.to_owned()).record(first_token.as_secs_f64());
    }
    for oddity in Oddity::ALL {
        let is_odd = answer.oddities.contains(&oddity);
        let model = model.to_owned();
        counter!(ODD_ANSWERS, "model" => model, "oddity" => oddity.as_str()).increment(u64::from(is_odd));
    }
    let Usage { prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens } = answer.usage;
    for (kind, tokens) in [
        ("prompt", prompt_tokens),
        ("completion", completion_tokens),
        ("cached", cached_tokens),
        ("reasoning", reasoning_tokens),
    ] {
        if let Some(tokens) = tokens {
            let (model, server) = (model.to_owned(), server.to_owned());
            counter!(TOKENS, "model" => model, "server" => server, "kind" => kind).increment(tokens);
        }
    }
}

/// An answer has its verdict.
pub(crate) fn evaluated(class: &str, took: Duration, verdict: &Verdict) {
    histogram!(EVALUATION_SECONDS, "class" => class.to_owned()).record(took.as_secs_f64());
    let said = |limit: &Limit| verdict.infos.values().any(|info| info.as_str() == Some(limit.message()));
    for limit in Limit::ALL.iter().filter(|limit| said(limit)) {
        counter!(LIMITS_HIT, "limit" => limit.as_str()).increment(1);
    }
}

pub(crate) fn evaluation_waited(time: Duration) {
    histogram!(EVALUATION_WAIT_SECONDS).record(time.as_secs_f64());
}

pub(crate) fn judged(stage: EvaluationStage, took: Duration) {
    histogram!(JUDGING_SECONDS, "stage" => stage.as_str()).record(took.as_secs_f64());
}

pub(crate) fn evaluator_started() {
    counter!(EVALUATORS_STARTED).increment(1);
}

/// Counts the death of an evaluation process: by the limit that the answer hit, or as external.
pub(crate) fn evaluator_died(limit: Option<Limit>) {
    counter!(EVALUATOR_DEATHS, "cause" => limit.map_or(EXTERNAL, Limit::as_str)).increment(1);
}

pub(crate) fn verdict_recalled() {
    counter!(RECALLED).increment(1);
}

/// Replaces the series of all servers.
pub(crate) fn servers(sights: &[ServerSight]) {
    let mut frame = Frame::default();
    for ServerSight { name, serves, is_up, is_mistaken, limit, in_flight, reason, load } in sights {
        let server = [("server", name.as_str()), ("serves", serves.as_str())];
        frame.set(LIMIT, &server, f64::from(*limit));
        frame.set(IN_FLIGHT, &server, f64::from(*in_flight));
        if let Some(reason) = reason {
            frame.one_of(LIMIT_REASON, &server, "reason", &LimitReason::WORDS, reason.as_str());
        }
        if let Some(is_up) = is_up {
            frame.set(SERVER_UP, &server, f64::from(u8::from(*is_up)));
            frame.set(SERVER_MISTAKEN, &server, f64::from(u8::from(*is_mistaken)));
        }
        let Some(load) = load else { continue };
        frame.set(SERVER_RUNNING, &server, load.running);
        frame.set(SERVER_WAITING, &server, load.waiting);
        for (name, value) in [
            (SERVER_KV_CACHE, load.kv_cache),
            (SERVER_PREFIX_QUERIES, load.prefix_queries),
            (SERVER_PREFIX_HITS, load.prefix_hits),
            (SERVER_PROMPT_TOKENS, load.prompt_tokens),
            (SERVER_GENERATED_TOKENS, load.generated_tokens),
            (SERVER_PREEMPTIONS, load.preemptions),
        ] {
            if let Some(value) = value {
                frame.set(name, &server, value);
            }
        }
    }
    frame::state("servers", frame);
}

/// What the worker does, for how long, how long loading took, and the GPUs of its server.
pub(crate) fn doing(phase: WorkerPhase, time: Duration, loaded_in: Option<Duration>, gpus: u32) {
    let mut frame = Frame::default();
    frame.one_of(PHASE, &[], "phase", &WorkerPhase::ALL.map(WorkerPhase::as_str), phase.as_str());
    frame.set(PHASE_SECONDS, &[], time.as_secs_f64());
    if let Some(loaded_in) = loaded_in {
        frame.set(LOAD_SECONDS, &[], loaded_in.as_secs_f64());
    }
    frame.set(GPUS, &[], f64::from(gpus));
    frame::state("doing", frame);
}

pub(crate) fn trouble(is_there: bool) {
    gauge!(TROUBLE).set(f64::from(u8::from(is_there)));
}

pub(crate) fn holdings(leases: usize, pending: u32, unacknowledged: u64) {
    gauge!(LEASES).set(leases as f64);
    gauge!(PENDING).set(pending);
    gauge!(UNACKNOWLEDGED).set(unacknowledged as f64);
}

pub(crate) fn spool_bytes(bytes: u64) {
    gauge!(SPOOL_BYTES).set(bytes as f64);
}

pub(crate) fn record_received(refused: bool) {
    counter!(RECEIPTS, "outcome" => if refused { "refused" } else { "stored" }).increment(1);
}

pub(crate) fn delivered(took: Duration) {
    histogram!(DELIVERY_SECONDS).record(took.as_secs_f64());
}

pub(crate) fn delivery_failed(code: ErrorCode) {
    counter!(DELIVERY_FAILURES, "code" => code.as_str()).increment(1);
}

pub(crate) fn exchange_failed(code: ErrorCode) {
    counter!(EXCHANGE_FAILURES, "code" => code.as_str()).increment(1);
}

pub(crate) fn renewal_age(age: Duration) {
    gauge!(RENEWAL_AGE).set(age.as_secs_f64());
}

pub(crate) fn leases_lost(leases: usize) {
    counter!(LOST_LEASES).increment(leases as u64);
}

pub(crate) fn spool_limit(bytes: u64) {
    gauge!(SPOOL_LIMIT_BYTES).set(bytes as f64);
}

pub(crate) fn parked(model: &str, cause: Option<FailureCause>) {
    let cause = cause.map_or("other", FailureCause::as_str);
    counter!(PARKINGS, "model" => model.to_owned(), "cause" => cause).increment(1);
}

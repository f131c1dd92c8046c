//! What the server counts. [`exposition`] turns it into the text of `/metrics`.

mod exposition;
mod histogram;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use exposition::{Scrape, exposition};
use histogram::{Histogram, bounds};

use crate::latency::{Finished, Load};

/// Why a request ended, in vLLM's words (label `finished_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    Stop,
    Length,
    Abort,
    Error,
    Repetition,
}

impl EndReason {
    pub(crate) const ALL: [(Self, &'static str); 5] = [
        (Self::Stop, "stop"),
        (Self::Length, "length"),
        (Self::Abort, "abort"),
        (Self::Error, "error"),
        (Self::Repetition, "repetition"),
    ];
}

/// Counters and histograms of one served model, with vLLM's names less the prefix `vllm:`. Each is updated on its own
/// without locks, so a scrape may see a request in one and not yet in another, as with vLLM.
#[derive(Debug)]
pub(crate) struct ModelMetrics {
    /// Unix time of creation in seconds, shown by the `_created` series.
    pub(crate) created: f64,
    /// Requests that faults keep unanswered; they count as running.
    pub(crate) hanging: AtomicU32,
    pub(crate) prompt_tokens: AtomicU64,
    pub(crate) prompt_tokens_cached: AtomicU64,
    pub(crate) generation_tokens: AtomicU64,
    pub(crate) request_success: [AtomicU64; EndReason::ALL.len()],
    pub(crate) rejected_by_queue: AtomicU64,
    pub(crate) request_prompt_tokens: Histogram,
    pub(crate) request_generation_tokens: Histogram,
    pub(crate) iteration_tokens: Histogram,
    pub(crate) request_max_num_generation_tokens: Histogram,
    pub(crate) request_params_n: Histogram,
    pub(crate) request_params_max_tokens: Histogram,
    pub(crate) time_to_first_token: Histogram,
    pub(crate) inter_token_latency: Histogram,
    pub(crate) request_time_per_output_token: Histogram,
    pub(crate) e2e_request_latency: Histogram,
    pub(crate) request_queue_time: Histogram,
    pub(crate) request_inference_time: Histogram,
    pub(crate) request_prefill_time: Histogram,
    pub(crate) request_decode_time: Histogram,
    pub(crate) request_num_preemptions: Histogram,
    pub(crate) request_prefill_kv_computed_tokens: Histogram,
}

/// The numbers of one answered request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) prompt_tokens: u32,
    pub(crate) output_tokens: u32,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) reason: EndReason,
    pub(crate) times: Finished,
}

impl ModelMetrics {
    pub(crate) fn new() -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Self {
            created,
            hanging: AtomicU32::new(0),
            prompt_tokens: AtomicU64::new(0),
            prompt_tokens_cached: AtomicU64::new(0),
            generation_tokens: AtomicU64::new(0),
            request_success: Default::default(),
            rejected_by_queue: AtomicU64::new(0),
            request_prompt_tokens: Histogram::of_counts(bounds::TOKENS),
            request_generation_tokens: Histogram::of_counts(bounds::TOKENS),
            iteration_tokens: Histogram::of_counts(bounds::ITERATION_TOKENS),
            request_max_num_generation_tokens: Histogram::of_counts(bounds::TOKENS),
            request_params_n: Histogram::of_counts(bounds::PARAMS_N),
            request_params_max_tokens: Histogram::of_counts(bounds::TOKENS),
            time_to_first_token: Histogram::of_seconds(bounds::FIRST_TOKEN_S),
            inter_token_latency: Histogram::of_seconds(bounds::PER_TOKEN_S),
            request_time_per_output_token: Histogram::of_seconds(bounds::PER_TOKEN_S),
            e2e_request_latency: Histogram::of_seconds(bounds::REQUEST_S),
            request_queue_time: Histogram::of_seconds(bounds::REQUEST_S),
            request_inference_time: Histogram::of_seconds(bounds::REQUEST_S),
            request_prefill_time: Histogram::of_seconds(bounds::REQUEST_S),
            request_decode_time: Histogram::of_seconds(bounds::REQUEST_S),
            request_num_preemptions: Histogram::of_counts(bounds::PREEMPTIONS),
            request_prefill_kv_computed_tokens: Histogram::of_counts(bounds::TOKENS),
        }
    }

    /// Counts an answered request.
    pub(crate) fn served(&self, served: Served) {
        let Served { prompt_tokens, output_tokens, max_tokens, reason, times } = served;
        let (prompt, output) = (u64::from(prompt_tokens), u64::from(output_tokens));
        let cached = u64::from(times.cached_tokens);
        self.prompt_tokens.fetch_add(prompt, Relaxed);
        self.prompt_tokens_cached.fetch_add(cached, Relaxed);
        self.generation_tokens.fetch_add(output, Relaxed);
        self.request_success[reason as usize].fetch_add(1, Relaxed);
        self.request_prompt_tokens.observe_count(prompt, 1);
        self.request_generation_tokens.observe_count(output, 1);
        self.request_max_num_generation_tokens.observe_count(output, 1);
        self.request_params_n.observe_count(1, 1);
        if let Some(max_tokens) = max_tokens {
            self.request_params_max_tokens.observe_count(u64::from(max_tokens), 1);
        }
        self.request_num_preemptions.observe_count(0, 1);
        self.request_prefill_kv_computed_tokens.observe_count(prompt.saturating_sub(cached), 1);
        let Finished { arrived, admitted, first_token, finished, .. } = times;
        let decode = finished.saturating_sub(first_token);
        self.time_to_first_token.observe_time(first_token.saturating_sub(arrived), 1);
        if let Some(gaps) = output_tokens.checked_sub(1).filter(|&gaps| gaps > 0) {
            self.inter_token_latency.observe_time(decode / gaps, u64::from(gaps));
        }
        self.request_time_per_output_token.observe_time(decode / output_tokens.saturating_sub(1).max(1), 1);
        self.e2e_request_latency.observe_time(finished.saturating_sub(arrived), 1);
        self.request_queue_time.observe_time(admitted.saturating_sub(arrived), 1);
        self.request_inference_time.observe_time(finished.saturating_sub(admitted), 1);
        self.request_prefill_time.observe_time(first_token.saturating_sub(admitted), 1);
        self.request_decode_time.observe_time(decode, 1);
    }

    /// Counts a request that ended without an answer.
    pub(crate) fn ended(&self, reason: EndReason) {
        self.request_success[reason as usize].fetch_add(1, Relaxed);
    }

    /// Counts engine steps; they are the server's heartbeat.
    pub(crate) fn steps(&self, steps: u64, tokens: u64) {
        self.iteration_tokens.observe_count(tokens, steps);
    }

    /// Requests answered, whatever the reason they stopped for.
    pub(crate) fn answered(&self) -> u64 {
        self.e2e_request_latency.count()
    }

    /// The engine's gauges and the hanging requests together.
    pub(crate) fn load(&self, engine: Load) -> Load {
        Load { running: engine.running + self.hanging.load(Relaxed), ..engine }
    }
}

/// Seconds since 1970.
pub(crate) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

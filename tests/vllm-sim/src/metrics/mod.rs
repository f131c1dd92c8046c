//! The counters of the server. [`exposition`] turns them into the text of `/metrics`.

mod exposition;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use exposition::{Scrape, exposition};

use crate::latency::{EngineFinished, EngineLoad};

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

/// Counters of one served model, with vLLM's names less the prefix `vllm:`. Each is updated on its own
/// without locks, so a scrape may see a request in one and not yet in another, as with vLLM.
#[derive(Debug)]
pub(crate) struct SimModelMetrics {
    /// Unix time of creation in seconds, shown by the `_created` series.
    pub(crate) created: f64,
    /// Requests that faults keep unanswered; they count as running.
    pub(crate) hanging: AtomicU32,
    pub(crate) prompt_tokens: AtomicU64,
    pub(crate) prompt_tokens_cached: AtomicU64,
    pub(crate) generation_tokens: AtomicU64,
    pub(crate) request_success: [AtomicU64; EndReason::ALL.len()],
    pub(crate) rejected_by_queue: AtomicU64,
    /// Requests answered, whatever the reason they stopped for.
    pub(crate) answered: AtomicU64,
    /// Nanoseconds that they took, by the engine's clock: the sum overflows after 584 years.
    pub(crate) engine_ns: AtomicU64,
}

/// The numbers of one answered request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedTotals {
    pub(crate) prompt_tokens: u32,
    pub(crate) output_tokens: u32,
    pub(crate) reason: EndReason,
    pub(crate) times: EngineFinished,
}

impl SimModelMetrics {
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
            answered: AtomicU64::new(0),
            engine_ns: AtomicU64::new(0),
        }
    }

    /// Counts an answered request.
    pub(crate) fn served(&self, served: ServedTotals) {
        let ServedTotals { prompt_tokens, output_tokens, reason, times } = served;
        self.prompt_tokens.fetch_add(u64::from(prompt_tokens), Relaxed);
        self.prompt_tokens_cached.fetch_add(u64::from(times.cached_tokens), Relaxed);
        self.generation_tokens.fetch_add(u64::from(output_tokens), Relaxed);
        self.request_success[reason as usize].fetch_add(1, Relaxed);
        self.answered.fetch_add(1, Relaxed);
        let took = times.finished.saturating_sub(times.arrived).as_nanos();
        self.engine_ns.fetch_add(u64::try_from(took).unwrap_or(u64::MAX), Relaxed);
    }

    /// Counts a request that ended without an answer.
    pub(crate) fn ended(&self, reason: EndReason) {
        self.request_success[reason as usize].fetch_add(1, Relaxed);
    }

    /// The engine's gauges and the hanging requests together.
    pub(crate) fn load(&self, engine: EngineLoad) -> EngineLoad {
        EngineLoad { running: engine.running + self.hanging.load(Relaxed), ..engine }
    }
}

/// Seconds since 1970.
pub(crate) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

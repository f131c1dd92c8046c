//! The counters of the server, and the text of `/metrics`: names, labels and help texts of vLLM 0.32 in the Prometheus text
//! format. Only families that workers, dashboards or tests read: load, cache, requests and tokens.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::latency::{EngineFinished, EngineLoad};

/// vLLM's words for why a request ended.
const REASONS: [&str; 5] = ["stop", "length", "abort", "error", "repetition"];

/// Why a request ended, of the reasons that are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    Stop,
    Length,
    Abort,
}

impl EndReason {
    /// vLLM's word for it.
    pub(crate) fn as_str(self) -> &'static str {
        REASONS[self as usize]
    }
}

/// Counters of one served model, with vLLM's names less the prefix `vllm:`. Each is updated on its own
/// without locks, so a scrape may see a request in one and not yet in another, as with vLLM.
#[derive(Debug, Default)]
pub(crate) struct SimModelMetrics {
    /// Requests that faults keep unanswered; they count as running.
    pub(crate) hanging: AtomicU32,
    prompt_tokens: AtomicU64,
    pub(crate) prompt_tokens_cached: AtomicU64,
    pub(crate) generation_tokens: AtomicU64,
    request_success: [AtomicU64; REASONS.len()],
    /// Requests answered, whatever the reason they stopped for.
    pub(crate) answered: AtomicU64,
}

impl SimModelMetrics {
    /// Counts an answered request.
    pub(crate) fn served(
        &self,
        prompt_tokens: u32,
        output_tokens: u32,
        reason: EndReason,
        times: EngineFinished,
    ) {
        self.prompt_tokens.fetch_add(u64::from(prompt_tokens), Relaxed);
        self.prompt_tokens_cached.fetch_add(u64::from(times.cached_tokens), Relaxed);
        self.generation_tokens.fetch_add(u64::from(output_tokens), Relaxed);
        self.answered.fetch_add(1, Relaxed);
        self.ended(reason);
    }

    /// Counts a request that ended, with an answer or without.
    pub(crate) fn ended(&self, reason: EndReason) {
        self.request_success[reason as usize].fetch_add(1, Relaxed);
    }

    /// Requests that ended for this reason.
    pub(crate) fn count_of(&self, reason: EndReason) -> u64 {
        self.request_success[reason as usize].load(Relaxed)
    }

    /// The engine's gauges and the hanging requests together.
    pub(crate) fn load(&self, engine: EngineLoad) -> EngineLoad {
        EngineLoad { running: engine.running + self.hanging.load(Relaxed), ..engine }
    }
}

/// One model as `/metrics` sees it.
pub(crate) struct Scrape<'a> {
    pub(crate) model: &'a str,
    pub(crate) metrics: &'a SimModelMetrics,
    pub(crate) load: EngineLoad,
    /// Tokens generated so far.
    pub(crate) generated: u64,
}

/// A series per model: its name, its kind, its help text and where its value is.
type Family = (&'static str, &'static str, &'static str, fn(&Scrape<'_>) -> f64);

const FAMILIES: [Family; 7] = [
    ("num_requests_running", "gauge", "Number of requests in model execution batches.", |scrape| {
        f64::from(scrape.load.running)
    }),
    ("num_requests_waiting", "gauge", "Number of requests waiting to be processed.", |scrape| {
        f64::from(scrape.load.waiting)
    }),
    ("kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", |scrape| {
        f64::from(scrape.load.held_blocks) / f64::from(scrape.load.total_blocks.max(1))
    }),
    (
        "prefix_cache_queries_total",
        "counter",
        "Prefix cache queries, in terms of number of queried tokens.",
        |scrape| scrape.metrics.prompt_tokens.load(Relaxed) as f64,
    ),
    (
        "prefix_cache_hits_total",
        "counter",
        "Prefix cache hits, in terms of number of cached tokens.",
        |scrape| scrape.metrics.prompt_tokens_cached.load(Relaxed) as f64,
    ),
    ("prompt_tokens_total", "counter", "Number of prefill tokens processed.", |scrape| {
        scrape.metrics.prompt_tokens.load(Relaxed) as f64
    }),
    ("generation_tokens_total", "counter", "Number of generation tokens processed.", |scrape| {
        scrape.generated as f64
    }),
];

/// The whole text. Families hold the series of all models, as the format demands.
pub(crate) fn exposition(scrapes: &[Scrape<'_>]) -> String {
    let mut text = String::new();
    for (name, kind, help, read) in FAMILIES {
        header(&mut text, name, kind, help);
        for scrape in scrapes {
            series(&mut text, name, "", scrape.model, read(scrape));
        }
    }
    header(&mut text, "request_success_total", "counter", "Count of successfully processed requests.");
    for scrape in scrapes {
        for (reason, count) in REASONS.iter().zip(&scrape.metrics.request_success) {
            let label = format!("finished_reason=\"{reason}\",");
            series(&mut text, "request_success_total", &label, scrape.model, count.load(Relaxed) as f64);
        }
    }
    text
}

fn header(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}");
}

/// One line, its labels sorted by name as Python's client writes them.
fn series(text: &mut String, name: &str, label: &str, model: &str, value: f64) {
    let model = model.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let _ = writeln!(text, "vllm:{name}{{engine=\"0\",{label}model_name=\"{model}\"}} {value:?}");
}

/// Seconds since 1970.
pub(crate) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

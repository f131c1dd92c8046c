//! The text of `/metrics`: vLLM 0.32's families, names, labels and help texts in the Prometheus text format.
//! Families of the Python process and of features that are not simulated (LoRA, multi-modal, flops) are left out.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use super::histogram::Histogram;
use super::{EndReason, ModelMetrics};
use crate::latency::{BLOCK_TOKENS, Load};

/// One model as `/metrics` sees it.
pub(crate) struct Scrape<'a> {
    pub(crate) model: &'a str,
    pub(crate) metrics: &'a ModelMetrics,
    pub(crate) load: Load,
}

/// A label and its value beside `engine` and `model_name`; an empty name means none.
type Label = (&'static str, &'static str);
const PLAIN: Label = ("", "");

enum Kind {
    /// A value that goes up and down.
    Gauge(fn(&Scrape<'_>) -> Vec<(Label, f64)>),
    /// A value that only grows. Exposed with the suffix `_total` and with a `_created` gauge, as Python's client does.
    Counter(fn(&Scrape<'_>) -> Vec<(Label, f64)>),
    /// As `Counter`, counted by the server in front of the engine: without the label `engine`.
    FrontCounter(fn(&Scrape<'_>) -> Vec<(Label, f64)>),
    /// A distribution.
    Histogram(for<'a> fn(&Scrape<'a>) -> &'a Histogram),
}

struct Family {
    name: &'static str,
    help: &'static str,
    kind: Kind,
}

const FAMILIES: &[Family] = &[
    Family {
        name: "num_requests_running",
        help: "Number of requests in model execution batches.",
        kind: Kind::Gauge(|scrape| vec![(PLAIN, f64::from(scrape.load.running))]),
    },
    Family {
        name: "num_requests_waiting",
        help: "Number of requests waiting to be processed.",
        kind: Kind::Gauge(|scrape| vec![(PLAIN, f64::from(scrape.load.waiting))]),
    },
    Family {
        name: "num_requests_waiting_by_reason",
        help: "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; 'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all reasons equals vllm:num_requests_waiting.",
        kind: Kind::Gauge(|scrape| {
            vec![(("reason", "capacity"), f64::from(scrape.load.waiting)), (("reason", "deferred"), 0.0)]
        }),
    },
    Family {
        name: "engine_sleep_state",
        help: "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.",
        kind: Kind::Gauge(|_| {
            vec![
                (("sleep_state", "awake"), 1.0),
                (("sleep_state", "weights_offloaded"), 0.0),
                (("sleep_state", "discard_all"), 0.0),
            ]
        }),
    },
    Family {
        name: "kv_cache_usage_perc",
        help: "KV-cache usage. 1 means 100 percent usage.",
        kind: Kind::Gauge(|scrape| {
            let Load { held_blocks, total_blocks, .. } = scrape.load;
            vec![(PLAIN, f64::from(held_blocks) / f64::from(total_blocks.max(1)))]
        }),
    },
    Family {
        name: "prefix_cache_queries",
        help: "Prefix cache queries, in terms of number of queried tokens.",
        kind: Kind::Counter(|scrape| count(scrape.metrics.prompt_tokens.load(Relaxed))),
    },
    Family {
        name: "prefix_cache_hits",
        help: "Prefix cache hits, in terms of number of cached tokens.",
        kind: Kind::Counter(|scrape| count(scrape.metrics.prompt_tokens_cached.load(Relaxed))),
    },
    Family {
        name: "num_preemptions",
        help: "Cumulative number of preemption from the engine.",
        kind: Kind::Counter(|_| count(0)),
    },
    Family {
        name: "prompt_tokens",
        help: "Number of prefill tokens processed.",
        kind: Kind::Counter(|scrape| count(scrape.metrics.prompt_tokens.load(Relaxed))),
    },
    Family {
        name: "prompt_tokens_by_source",
        help: "Number of prompt tokens by source.",
        kind: Kind::Counter(|scrape| {
            // Cached first: a request counted in between then cannot make the difference negative.
            let cached = scrape.metrics.prompt_tokens_cached.load(Relaxed);
            let computed = scrape.metrics.prompt_tokens.load(Relaxed).saturating_sub(cached);
            vec![
                (("source", "local_compute"), computed as f64),
                (("source", "local_cache_hit"), cached as f64),
                (("source", "external_kv_transfer"), 0.0),
            ]
        }),
    },
    Family {
        name: "prompt_tokens_cached",
        help: "Number of cached prompt tokens (local + external).",
        kind: Kind::Counter(|scrape| count(scrape.metrics.prompt_tokens_cached.load(Relaxed))),
    },
    Family {
        name: "generation_tokens",
        help: "Number of generation tokens processed.",
        kind: Kind::Counter(|scrape| count(scrape.metrics.generation_tokens.load(Relaxed))),
    },
    Family {
        name: "request_success",
        help: "Count of successfully processed requests.",
        kind: Kind::Counter(|scrape| {
            EndReason::ALL
                .iter()
                .zip(&scrape.metrics.request_success)
                .map(|((_, name), value)| (("finished_reason", *name), value.load(Relaxed) as f64))
                .collect()
        }),
    },
    Family {
        name: "admission_rejections",
        help: "Number of admission attempts rejected by a queue limit, by reason.",
        kind: Kind::FrontCounter(|scrape| {
            let rejected = scrape.metrics.rejected_by_queue.load(Relaxed);
            vec![
                (("reason", "max_num_queued_reqs"), rejected as f64),
                (("reason", "max_num_queued_tokens"), 0.0),
            ]
        }),
    },
    Family {
        name: "request_prompt_tokens",
        help: "Number of prefill tokens processed.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_prompt_tokens),
    },
    Family {
        name: "request_generation_tokens",
        help: "Number of generation tokens processed.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_generation_tokens),
    },
    Family {
        name: "iteration_tokens_total",
        help: "Histogram of number of tokens per engine_step.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.iteration_tokens),
    },
    Family {
        name: "request_max_num_generation_tokens",
        help: "Histogram of maximum number of requested generation tokens.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_max_num_generation_tokens),
    },
    Family {
        name: "request_params_n",
        help: "Histogram of the n request parameter.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_params_n),
    },
    Family {
        name: "request_params_max_tokens",
        help: "Histogram of the max_tokens request parameter.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_params_max_tokens),
    },
    Family {
        name: "time_to_first_token_seconds",
        help: "Histogram of time to first token in seconds.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.time_to_first_token),
    },
    Family {
        name: "inter_token_latency_seconds",
        help: "Histogram of inter-token latency in seconds.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.inter_token_latency),
    },
    Family {
        name: "request_time_per_output_token_seconds",
        help: "Histogram of time_per_output_token_seconds per request.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_time_per_output_token),
    },
    Family {
        name: "e2e_request_latency_seconds",
        help: "Histogram of e2e request latency in seconds.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.e2e_request_latency),
    },
    Family {
        name: "request_queue_time_seconds",
        help: "Histogram of time spent in WAITING phase for request.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_queue_time),
    },
    Family {
        name: "request_inference_time_seconds",
        help: "Histogram of time spent in RUNNING phase for request.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_inference_time),
    },
    Family {
        name: "request_prefill_time_seconds",
        help: "Histogram of time spent in PREFILL phase for request.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_prefill_time),
    },
    Family {
        name: "request_decode_time_seconds",
        help: "Histogram of time spent in DECODE phase for request.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_decode_time),
    },
    Family {
        name: "request_num_preemptions",
        help: "Histogram of the number of times a request was preempted.",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_num_preemptions),
    },
    Family {
        name: "request_prefill_kv_computed_tokens",
        help: "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
        kind: Kind::Histogram(|scrape| &scrape.metrics.request_prefill_kv_computed_tokens),
    },
];

fn count(value: u64) -> Vec<(Label, f64)> {
    vec![(PLAIN, value as f64)]
}

/// The whole text. Families hold the series of all models, as the format demands.
pub(crate) fn exposition(scrapes: &[Scrape<'_>]) -> String {
    let mut text = Text::default();
    for family in FAMILIES {
        text.family(family, scrapes);
    }
    text.header("cache_config_info", "Information of the LLMEngine CacheConfig", "gauge");
    for scrape in scrapes {
        let blocks = scrape.load.total_blocks;
        let labels = [
            ("block_size", BLOCK_TOKENS.to_string()),
            ("enable_prefix_caching", "True".into()),
            ("num_gpu_blocks", blocks.to_string()),
            ("kv_cache_size_tokens", (u64::from(blocks) * u64::from(BLOCK_TOKENS)).to_string()),
        ];
        let labels = labels.iter().map(|(name, value)| (*name, value.as_str()));
        text.series("cache_config_info", "", &Series::new(scrape, true).with(labels), 1.0);
    }
    text.0
}

/// The labels of one series, sorted by name as Python's client writes them.
struct Series<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Series<'a> {
    fn new(scrape: &'a Scrape<'_>, engine: bool) -> Self {
        let mut labels = vec![("model_name", scrape.model)];
        if engine {
            labels.push(("engine", "0"));
        }
        Self(labels)
    }

    fn with(mut self, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.0.extend(labels.into_iter().filter(|(name, _)| !name.is_empty()));
        self.0.sort_unstable();
        self
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, family: &Family, scrapes: &[Scrape<'_>]) {
        let Family { name, help, ref kind } = *family;
        match *kind {
            Kind::Gauge(read) => {
                self.header(name, help, "gauge");
                for scrape in scrapes {
                    for (label, value) in read(scrape) {
                        self.series(name, "", &Series::new(scrape, true).with([label]), value);
                    }
                }
            }
            Kind::Counter(read) => self.counter(name, help, read, true, scrapes),
            Kind::FrontCounter(read) => self.counter(name, help, read, false, scrapes),
            Kind::Histogram(read) => self.histogram(name, help, read, scrapes),
        }
    }

    fn counter(
        &mut self,
        name: &str,
        help: &str,
        read: fn(&Scrape<'_>) -> Vec<(Label, f64)>,
        engine: bool,
        scrapes: &[Scrape<'_>],
    ) {
        self.header(&format!("{name}_total"), help, "counter");
        for scrape in scrapes {
            for (label, value) in read(scrape) {
                self.series(name, "_total", &Series::new(scrape, engine).with([label]), value);
            }
        }
        self.header(&format!("{name}_created"), help, "gauge");
        for scrape in scrapes {
            for (label, _) in read(scrape) {
                let series = Series::new(scrape, engine).with([label]);
                self.series(name, "_created", &series, scrape.metrics.created);
            }
        }
    }

    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        read: for<'a> fn(&Scrape<'a>) -> &'a Histogram,
        scrapes: &[Scrape<'_>],
    ) {
        self.header(name, help, "histogram");
        for scrape in scrapes {
            let reading = read(scrape).read();
            for (bound, below) in &reading.cumulative {
                let bound = if bound.is_infinite() { "+Inf".to_owned() } else { format!("{bound:?}") };
                let series = Series::new(scrape, true).with([("le", bound.as_str())]);
                self.series(name, "_bucket", &series, *below as f64);
            }
            let series = Series::new(scrape, true).with([]);
            let count = reading.cumulative.last().map_or(0, |&(_, count)| count);
            self.series(name, "_count", &series, count as f64);
            self.series(name, "_sum", &series, reading.sum);
        }
        self.header(&format!("{name}_created"), help, "gauge");
        for scrape in scrapes {
            self.series(name, "_created", &Series::new(scrape, true).with([]), scrape.metrics.created);
        }
    }

    fn header(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}");
    }

    fn series(&mut self, name: &str, suffix: &str, series: &Series<'_>, value: f64) {
        let _ = write!(self.0, "vllm:{name}{suffix}{{");
        for (at, (label, text)) in series.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{comma}{label}=\"{text}\"");
        }
        let _ = writeln!(self.0, "}} {value:?}");
    }
}

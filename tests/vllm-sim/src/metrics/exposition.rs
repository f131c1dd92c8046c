//! The text of `/metrics`: names, labels and help texts of vLLM 0.32 in the Prometheus text format. Only families that
//! workers or dashboards read: load, cache, requests and tokens.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use super::{EndReason, SimModelMetrics};
use crate::latency::EngineLoad;

/// One model as `/metrics` sees it.
pub(crate) struct Scrape<'a> {
    pub(crate) model: &'a str,
    pub(crate) metrics: &'a SimModelMetrics,
    pub(crate) load: EngineLoad,
    /// Tokens generated so far.
    pub(crate) generated: u64,
}

/// A label and its value beside `engine` and `model_name`; an empty name means none.
type Label = (&'static str, &'static str);
const PLAIN: Label = ("", "");

enum Kind {
    /// A value that goes up and down.
    Gauge(fn(&Scrape<'_>) -> Vec<(Label, f64)>),
    /// A value that only grows. Exposed with the suffix `_total` and with a `_created` gauge, as Python's client does.
    Counter(fn(&Scrape<'_>) -> Vec<(Label, f64)>),
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
        name: "kv_cache_usage_perc",
        help: "KV-cache usage. 1 means 100 percent usage.",
        kind: Kind::Gauge(|scrape| {
            let EngineLoad { held_blocks, total_blocks, .. } = scrape.load;
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
        name: "prompt_tokens",
        help: "Number of prefill tokens processed.",
        kind: Kind::Counter(|scrape| count(scrape.metrics.prompt_tokens.load(Relaxed))),
    },
    Family {
        name: "generation_tokens",
        help: "Number of generation tokens processed.",
        kind: Kind::Counter(|scrape| count(scrape.generated)),
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
    text.0
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
                        self.series(name, scrape, label, value);
                    }
                }
            }
            Kind::Counter(read) => {
                let (total, created) = (format!("{name}_total"), format!("{name}_created"));
                self.header(&total, help, "counter");
                for scrape in scrapes {
                    for (label, value) in read(scrape) {
                        self.series(&total, scrape, label, value);
                    }
                }
                self.header(&created, help, "gauge");
                for scrape in scrapes {
                    for (label, _) in read(scrape) {
                        self.series(&created, scrape, label, scrape.metrics.created);
                    }
                }
            }
        }
    }

    fn header(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}");
    }

    /// One line, its labels sorted by name as Python's client writes them.
    fn series(&mut self, name: &str, scrape: &Scrape<'_>, label: Label, value: f64) {
        let mut labels = vec![("engine", "0"), ("model_name", scrape.model)];
        labels.extend((label != PLAIN).then_some(label));
        labels.sort_unstable();
        let _ = write!(self.0, "vllm:{name}{{");
        for (at, (label, text)) in labels.into_iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{comma}{label}=\"{text}\"");
        }
        let _ = writeln!(self.0, "}} {value:?}");
    }
}

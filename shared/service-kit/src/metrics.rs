//! Metrics for Prometheus.
//!
//! Each crate declares its metrics in one table of [`MetricDefinition`]s and describes them with [`Metrics::describe`].
//! It counts events with the macros of the `metrics` crate, and states current values in a [`frame`](frame::Frame). The
//! reference page in the documentation is generated from the same tables, so a new metric is added to its crate's
//! table.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

pub use metrics::Unit;

pub mod frame;
pub mod process;

const BUILD_INFO: &str = "kgfleet_build_info";

/// Metrics of every process, beside [`process::DEFINITIONS`].
pub const DEFINITIONS: &[MetricDefinition] = &[
    MetricDefinition::gauge(
        BUILD_INFO,
        Unit::Count,
        &["component", "version"],
        "1 for the version of this process.",
    ),
    MetricDefinition::gauge(
        frame::DROPPED_SERIES,
        Unit::Count,
        &[],
        "Series left out because their metric has 5000 already; 0 unless models times tasks of the active runs are more.",
    ),
];

/// Upper bounds of the buckets of every histogram, in seconds: from a local call to a long answer of a slow model.
pub const BUCKETS_S: [f64; 18] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
    600.0,
];

/// How often buffered histogram values are moved into their buckets if nobody scrapes. Until then, a histogram keeps
/// every value.
pub const UPKEEP_EVERY: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Increases; restarts with the process.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Counts values by size.
    Histogram,
}

impl MetricKind {
    /// Prometheus's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// The declaration of a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricDefinition {
    /// Its name, such as `kgfleet_records_total`.
    pub name: &'static str,
    pub kind: MetricKind,
    /// Unit of its values.
    pub unit: Unit,
    /// Help text, one sentence.
    pub help: &'static str,
    /// Names of its labels. Their values come from closed lists or configurations, never from external input, so
    /// their number is bounded.
    pub labels: &'static [&'static str],
}

impl MetricDefinition {
    pub const fn counter(
        name: &'static str,
        unit: Unit,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: MetricKind::Counter, unit, help, labels }
    }

    pub const fn gauge(
        name: &'static str,
        unit: Unit,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: MetricKind::Gauge, unit, help, labels }
    }

    /// A histogram of durations.
    pub const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: MetricKind::Histogram, unit: Unit::Seconds, help, labels }
    }
}

/// Declares metrics: a constant with the name of each, and a table of them all. A line is
/// `CONSTANT = kind "name" Unit ["label"] "Help.";`, for a histogram without the unit, which is seconds.
#[macro_export]
macro_rules! metric_table {
    (
        $(#[$about:meta])*
        pub const $table:ident;

        $($constant:ident = $kind:ident $name:literal $($unit:ident)? [$($label:literal),*] $help:literal;)+
    ) => {
        $(pub(crate) const $constant: &str = $name;)+

        $(#[$about])*
        pub const $table: &[$crate::metrics::MetricDefinition] = &[
            $($crate::metrics::MetricDefinition::$kind(
                $constant,
                $($crate::metrics::Unit::$unit,)?
                &[$($label),*],
                $help,
            )),+
        ];
    };
}

/// The metrics of this process.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

/// All definitions that were passed to [`Metrics::describe`]; frames are written with their help texts.
static DESCRIBED: Mutex<BTreeMap<&'static str, MetricDefinition>> = Mutex::new(BTreeMap::new());

static INSTALLED: Mutex<Option<Metrics>> = Mutex::new(None);

/// Whether this process collects metrics.
pub fn is_collecting() -> bool {
    INSTALLED.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Another recorder is installed in this process.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be collected: {0}")]
pub struct InstallError(String);

impl Metrics {
    /// Starts collecting. The first call in a process installs the recorder; further ones return the same.
    ///
    /// # Errors
    /// Another recorder is installed.
    pub fn install() -> Result<Self, InstallError> {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(metrics) = installed.as_ref() {
            return Ok(metrics.clone());
        }
        let handle = PrometheusBuilder::new()
            .set_buckets(&BUCKETS_S)
            .and_then(PrometheusBuilder::install_recorder)
            .map_err(|e| InstallError(e.to_string()))?;
        Ok(installed.insert(Self(handle)).clone())
    }

    /// Sets the metric that names component and version of this process, and describes the metrics of every process.
    pub fn introduce(&self, component: &'static str, version: &str) {
        self.describe(DEFINITIONS);
        let mut frame = frame::Frame::default();
        frame.set(BUILD_INFO, &[("component", component), ("version", version)], 1.0);
        frame::state("build", frame);
    }

    /// Sets help text and unit of metrics. May be called repeatedly.
    pub fn describe(&self, definitions: &[MetricDefinition]) {
        let mut described = DESCRIBED.lock().unwrap_or_else(PoisonError::into_inner);
        described.extend(definitions.iter().map(|definition| (definition.name, *definition)));
        drop(described);
        for MetricDefinition { name, kind, unit, help, .. } in definitions {
            match kind {
                MetricKind::Counter => metrics::describe_counter!(*name, *unit, *help),
                MetricKind::Gauge => metrics::describe_gauge!(*name, *unit, *help),
                MetricKind::Histogram => metrics::describe_histogram!(*name, *unit, *help),
            }
        }
    }

    /// All metrics in Prometheus's text format.
    pub fn render(&self) -> String {
        let mut text = self.0.render();
        frame::render(&DESCRIBED.lock().unwrap_or_else(PoisonError::into_inner), &mut text);
        process::render(&mut text);
        text
    }

    /// Keeps histograms small; see [`UPKEEP_EVERY`]. [`http::serve`](crate::http::serve) also does this.
    pub async fn keep_up(&self) {
        let mut rounds = tokio::time::interval(UPKEEP_EVERY);
        loop {
            rounds.tick().await;
            self.0.run_upkeep();
        }
    }
}

/// Checks a table of metrics against Prometheus's conventions (<https://prometheus.io/docs/practices/naming/>) and
/// ours; for a test beside each table.
pub fn violations(definitions: &[MetricDefinition]) -> Vec<String> {
    let snake = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let mut violations = Vec::new();
    for (i, definition) in definitions.iter().enumerate() {
        let MetricDefinition { name, kind, unit, help, labels } = definition;
        let mut wrong = |what: &str| violations.push(format!("{name}: {what}"));
        if !snake(name) || !(name.starts_with("kgfleet_") || name.starts_with("process_")) {
            wrong("the name is not `kgfleet_` and lower-case words");
        }
        if (*kind == MetricKind::Counter) != name.ends_with("_total") {
            wrong("counters, and only they, end in `_total`");
        }
        let stem = name.strip_suffix("_total").unwrap_or(name);
        for (of, suffix) in [(Unit::Seconds, "_seconds"), (Unit::Bytes, "_bytes")] {
            if (*unit == of) != stem.ends_with(suffix) {
                wrong(&format!("the unit is {}, the name says otherwise", unit.as_str()));
            }
        }
        if *kind == MetricKind::Histogram && *unit != Unit::Seconds {
            wrong("histograms have buckets for seconds");
        }
        if !help.ends_with('.') {
            wrong("the help is no sentence");
        }
        if !labels.iter().all(|label| snake(label)) {
            wrong("a label is not in lower-case words");
        }
        if definitions[..i].iter().any(|other| other.name == *name) {
            wrong("the name is used twice");
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [MetricDefinition; 3] = [
        MetricDefinition {
            name: "kgfleet_test_calls_total",
            kind: MetricKind::Counter,
            unit: Unit::Count,
            help: "Calls made.",
            labels: &["code"],
        },
        MetricDefinition {
            name: "kgfleet_test_memory_bytes",
            kind: MetricKind::Gauge,
            unit: Unit::Bytes,
            help: "Memory in use.",
            labels: &[],
        },
        MetricDefinition {
            name: "kgfleet_test_call_seconds",
            kind: MetricKind::Histogram,
            unit: Unit::Seconds,
            help: "Time of a call.",
            labels: &[],
        },
    ];

    #[test]
    fn metrics_are_rendered_with_help_type_labels_and_buckets() {
        let metrics = Metrics::install().unwrap();
        metrics.describe(&GOOD);
        metrics::counter!("kgfleet_test_calls_total", "code" => "full").increment(2);
        metrics::gauge!("kgfleet_test_memory_bytes").set(1024.0);
        metrics::histogram!("kgfleet_test_call_seconds").record(0.3);
        // A second installation is the same one.
        let text = Metrics::install().unwrap().render();
        for line in [
            "# HELP kgfleet_test_calls_total Calls made.",
            "# TYPE kgfleet_test_calls_total counter",
            "kgfleet_test_calls_total{code=\"full\"} 2",
            "kgfleet_test_memory_bytes 1024",
            "# TYPE kgfleet_test_call_seconds histogram",
            "kgfleet_test_call_seconds_bucket{le=\"0.25\"} 0",
            "kgfleet_test_call_seconds_bucket{le=\"0.5\"} 1",
            "kgfleet_test_call_seconds_bucket{le=\"600\"} 1",
            "kgfleet_test_call_seconds_count 1",
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
        }
    }

    #[test]
    fn what_a_source_states_is_gone_when_it_does_not_state_it_again() {
        let metrics = Metrics::install().unwrap();
        metrics.introduce("test", "1.2.3");
        assert_eq!(violations(&[DEFINITIONS, process::DEFINITIONS].concat()), [""; 0]);
        let state = |runs: &[&str]| {
            let mut frame = frame::Frame::default();
            runs.iter().for_each(|run| frame.set("kgfleet_test_stated", &[("run", run)], 1.0));
            frame::state("test", frame);
            let text = metrics.render();
            let found = text.lines().filter_map(|line| line.strip_prefix("kgfleet_test_stated{run=\""));
            found.map(|rest| rest.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(state(&["a", "b"]), ["a", "b"]);
        assert_eq!(state(&["b"]), ["b"]);
        assert_eq!(state(&[]), [""; 0]);
        let text = metrics.render();
        for line in [
            "# TYPE kgfleet_build_info gauge",
            "kgfleet_build_info{component=\"test\",version=\"1.2.3\"} 1",
            "# TYPE process_cpu_seconds_total counter",
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
        }
    }

    #[test]
    fn a_good_table_has_no_violations_and_each_fault_is_named() {
        assert_eq!(violations(&GOOD), [""; 0]);
        let [counter, gauge, histogram] = GOOD;
        for (bad, words) in [
            (MetricDefinition { name: "Calls_total", ..counter }, "`kgfleet_`"),
            (MetricDefinition { name: "kgfleet_calls", ..counter }, "`_total`"),
            (MetricDefinition { name: "kgfleet_memory", ..gauge }, "the unit is bytes"),
            (
                MetricDefinition { name: "kgfleet_wait_seconds", unit: Unit::Count, ..gauge },
                "the unit is count",
            ),
            (
                MetricDefinition { name: "kgfleet_sizes", unit: Unit::Count, ..histogram },
                "buckets for seconds",
            ),
            (MetricDefinition { help: "Time", ..histogram }, "no sentence"),
            (MetricDefinition { labels: &["HTTP code"], ..counter }, "a label"),
        ] {
            let found = violations(&[bad]);
            assert!(found.len() == 1 && found[0].contains(words), "{words}: {found:?}");
        }
        assert!(violations(&[gauge, gauge])[0].contains("twice"));
    }
}

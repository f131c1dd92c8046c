//! What a coordinator measures. Labels are models, tasks and outcomes, never runs or dialogues: their number is bounded
//! by the configurations in use.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::{counter, gauge, histogram};
use service_kit::metrics::{MetricDefinition, MetricKind, Unit};

use crate::aggregate::Row;
use crate::coordinator::Coordinator;
use crate::layout::Slot;
use crate::progress;
use crate::run::Run;
use crate::view::status;

const DIALOGUES: &str = "kgfleet_dialogues_total";
const TOKENS: &str = "kgfleet_tokens_total";
const RECORDS: &str = "kgfleet_records_total";
const COMMIT_SECONDS: &str = "kgfleet_commit_duration_seconds";
const BYTES_IN_FLIGHT: &str = "kgfleet_records_in_flight_bytes";
const UNITS: &str = "kgfleet_units";
const BACKLOG: &str = "kgfleet_backlog_dialogues";
const WORKERS: &str = "kgfleet_workers";
const RUNS: &str = "kgfleet_runs";
const RUN_ETA: &str = "kgfleet_run_eta_seconds";

/// What a coordinator measures.
pub const DEFINITIONS: &[MetricDefinition] = &[
    MetricDefinition {
        name: DIALOGUES,
        kind: MetricKind::Counter,
        unit: Unit::Count,
        help: "Dialogues whose record counts, by outcome: scored, or the cause of failure. A record that supersedes another one counts again.",
        labels: &["model", "task", "outcome"],
    },
    MetricDefinition {
        name: TOKENS,
        kind: MetricKind::Counter,
        unit: Unit::Count,
        help: "Tokens that models generated for these dialogues, as far as their servers tell.",
        labels: &["model"],
    },
    MetricDefinition {
        name: RECORDS,
        kind: MetricKind::Counter,
        unit: Unit::Count,
        help: "Records stored, whether they count or not.",
        labels: &[],
    },
    MetricDefinition {
        name: COMMIT_SECONDS,
        kind: MetricKind::Histogram,
        unit: Unit::Seconds,
        help: "Time from a batch of records being at hand to its receipts: ticket, log, queue.",
        labels: &[],
    },
    MetricDefinition {
        name: BYTES_IN_FLIGHT,
        kind: MetricKind::Gauge,
        unit: Unit::Bytes,
        help: "Bytes of records on their way to the log.",
        labels: &[],
    },
    MetricDefinition {
        name: UNITS,
        kind: MetricKind::Gauge,
        unit: Unit::Count,
        help: "Units of runs that are not over: pending, leased or dead.",
        labels: &["model", "state"],
    },
    MetricDefinition {
        name: BACKLOG,
        kind: MetricKind::Gauge,
        unit: Unit::Count,
        help: "Dialogues of pending and leased units: what autoscaling goes by.",
        labels: &["model"],
    },
    MetricDefinition {
        name: WORKERS,
        kind: MetricKind::Gauge,
        unit: Unit::Count,
        help: "Registered workers.",
        labels: &[],
    },
    MetricDefinition {
        name: RUNS,
        kind: MetricKind::Gauge,
        unit: Unit::Count,
        help: "Runs that are not over.",
        labels: &[],
    },
    MetricDefinition {
        name: RUN_ETA,
        kind: MetricKind::Gauge,
        unit: Unit::Seconds,
        help: "Time that the slowest model of all runs takes for the rest at its present rate; 0 where none moves.",
        labels: &[],
    },
];

/// A record counts now that did not before.
pub(crate) fn dialogue(run: &Run, slot: Slot, entry: Row, tokens: u64) {
    let (model, task, _) = run.layout.place(slot);
    let outcome = entry.outcome.err().map_or("scored", domain::FailureCause::as_str);
    let (model, task) = (run.models[model].label.to_string(), run.plan.tasks[task].label.to_string());
    counter!(TOKENS, "model" => model.clone()).increment(tokens);
    counter!(DIALOGUES, "model" => model, "task" => task, "outcome" => outcome).increment(1);
}

/// A batch was stored.
pub(crate) fn committed(records: usize, took: Duration) {
    counter!(RECORDS).increment(records as u64);
    histogram!(COMMIT_SECONDS).record(took.as_secs_f64());
}

/// What is not counted as it happens.
pub(crate) async fn gauges(coordinator: &Coordinator) {
    gauge!(BYTES_IN_FLIGHT).set(coordinator.commits.bytes_in_flight() as f64);
    let mut statuses = Vec::new();
    if let Ok(workers) = coordinator.queue.workers().await {
        gauge!(WORKERS).set(workers.len() as f64);
        statuses.extend(workers.iter().map(status));
    }
    let Ok(snapshot) = coordinator.backlog().await else { return };
    // Models of runs that are over show nothing any more, not what they showed last.
    let mut models: BTreeMap<String, [u64; 4]> = coordinator
        .runs
        .loaded()
        .iter()
        .flat_map(|run| run.models.iter().map(|spec| (spec.label.to_string(), [0; 4])).collect::<Vec<_>>())
        .collect();
    let mut eta = 0.0_f64;
    for of_run in &snapshot.runs {
        for (spec, backlog) in of_run.run.models.iter().zip(&of_run.models) {
            let Some(counts) = &backlog.counts else { continue };
            let sums = models.entry(spec.label.to_string()).or_default();
            let numbers = [counts.pending, counts.leased, counts.dead, counts.backlog_dialogues];
            sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
        let run = &of_run.run;
        let counts: Vec<_> = of_run.models.iter().filter_map(|model| model.counts.clone()).collect();
        let cells = run.table(|table| table.cells(&run.plan, &run.layout));
        let views = coordinator.model_views(run, &cells, &counts, &statuses);
        eta = eta.max(progress::of_run(&views).eta_s.unwrap_or_default());
    }
    for (model, [pending, leased, dead, backlog]) in models {
        for (state, units) in [("pending", pending), ("leased", leased), ("dead", dead)] {
            gauge!(UNITS, "model" => model.clone(), "state" => state).set(units as f64);
        }
        gauge!(BACKLOG, "model" => model).set(backlog as f64);
    }
    gauge!(RUNS).set(snapshot.runs.len() as f64);
    gauge!(RUN_ETA).set(eta);
}

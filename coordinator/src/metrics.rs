//! What a coordinator measures. Labels are models, tasks and outcomes, never runs or dialogues: their number is bounded
//! by the configurations in use.

use std::sync::Arc;
use std::time::Duration;

use metrics::{counter, gauge, histogram};

use crate::aggregate::Entry;
use crate::config::MAX_BYTES_IN_FLIGHT;
use crate::core::Core;
use crate::layout::Slot;
use crate::run::Run;

/// Dialogues whose record counts, by model, task and outcome (`scored`, or the cause of failure).
pub const DIALOGUES: &str = "kgfleet_dialogues_total";
/// Seconds from a batch of records being at hand to its receipts.
pub const COMMIT_SECONDS: &str = "kgfleet_commit_duration_seconds";
/// Records stored.
pub const RECORDS: &str = "kgfleet_records_total";
/// Bytes of records on their way to the log.
pub const BYTES_IN_FLIGHT: &str = "kgfleet_records_in_flight_bytes";
/// Units by model and state (`pending`, `leased`, `dead`), over all runs that are not over.
pub const UNITS: &str = "kgfleet_units";
/// Dialogues of pending and leased units by model: what autoscaling goes by.
pub const BACKLOG: &str = "kgfleet_backlog_dialogues";
/// Registered workers.
pub const WORKERS: &str = "kgfleet_workers";
/// Runs by phase, those that are not over.
pub const RUNS: &str = "kgfleet_runs";
/// Seconds that the longest of the runs takes at its present rate.
pub const RUN_ETA: &str = "kgfleet_run_eta_seconds";

/// A record counts now that did not before.
pub(crate) fn dialogue(run: &Run, slot: Slot, entry: Entry) {
    let (model, task, _) = run.layout.place(slot);
    let outcome = entry.outcome.err().map_or("scored", domain::FailureCause::as_str);
    let (model, task) = (run.models[model].label.to_string(), run.plan.tasks[task].label.to_string());
    counter!(DIALOGUES, "model" => model, "task" => task, "outcome" => outcome).increment(1);
}

/// A batch was stored.
pub(crate) fn committed(records: usize, took: Duration) {
    counter!(RECORDS).increment(records as u64);
    histogram!(COMMIT_SECONDS).record(took.as_secs_f64());
}

/// What is not counted as it happens.
pub(crate) async fn gauges(core: &Arc<Core>) {
    let free = core.room.available_permits() * crate::commit::BYTES_PER_PERMIT;
    gauge!(BYTES_IN_FLIGHT).set(MAX_BYTES_IN_FLIGHT.saturating_sub(free) as f64);
    if let Ok(workers) = core.queue.workers().await {
        gauge!(WORKERS).set(workers.len() as f64);
    }
    let Ok(snapshot) = core.backlog().await else { return };
    let mut models = std::collections::BTreeMap::<&str, [u64; 4]>::new();
    let mut eta = 0.0_f64;
    for of_run in &snapshot.runs {
        for (spec, backlog) in of_run.run.models.iter().zip(&of_run.models) {
            let Some(counts) = &backlog.counts else { continue };
            let sums = models.entry(spec.label.as_str()).or_default();
            let numbers = [counts.pending, counts.leased, counts.dead, counts.backlog_dialogues];
            sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
        let (done, rate) =
            (of_run.run.table(|table| table.scored() + table.failed()), of_run.run.rate(core.now()));
        let left = of_run.run.manifest.planned_dialogues.saturating_sub(done);
        if rate > 0.0 {
            eta = eta.max(left as f64 / rate);
        }
    }
    for (model, [pending, leased, dead, backlog]) in models {
        for (state, units) in [("pending", pending), ("leased", leased), ("dead", dead)] {
            gauge!(UNITS, "model" => model.to_owned(), "state" => state).set(units as f64);
        }
        gauge!(BACKLOG, "model" => model.to_owned()).set(backlog as f64);
    }
    gauge!(RUNS).set(snapshot.runs.len() as f64);
    gauge!(RUN_ETA).set(eta);
}

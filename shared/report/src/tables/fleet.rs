//! Runs and workers of a coordinator in lines and tables, for terminals and for the live page. The coordinator computes the
//! values.

use domain::control::{BenchmarkView, RunPhase, WorkerView};
use present::table::{Cell, Table, printable};

use crate::words::{duration, figure};

/// Maximum number of reasons in a line.
const REASONS_SHOWN_MAX: usize = 3;

/// One line per benchmark.
pub fn runs(views: &[BenchmarkView]) -> Table {
    let mut table = Table::default()
        .left(["run", "planned", "name", "phase"])
        .right(["dialogues", "scored", "failed", "per s", "tokens/s", "ETA"])
        .left([""]);
    for view in views {
        table.row(vec![
            view.run.to_string(),
            view.created_at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            printable(&view.name),
            view.phase.to_string(),
            view.planned.to_string(),
            view.scored.to_string(),
            view.failed.to_string(),
            figure(view.rate),
            figure(view.tokens_per_second),
            eta(view.eta_s),
            trouble(view).unwrap_or_default(),
        ]);
    }
    table
}

/// One line per run of a judged benchmark.
pub fn stage_runs(view: &BenchmarkView) -> Table {
    let mut table = Table::default().left(["run", "stage", "about", "asks", "phase"]).right([
        "dialogues",
        "scored",
        "failed",
    ]);
    for run in &view.runs {
        table.row([
            Cell::from(run.name.as_str()),
            Cell::from(run.stage.as_str()),
            Cell::from(run.model.as_str()),
            Cell::from(run.asks.as_str()),
            Cell::from(run.phase.as_str()),
            Cell::Count(run.planned),
            Cell::Count(run.scored),
            Cell::Count(run.failed),
        ]);
    }
    table
}

/// One benchmark as a line.
pub fn headline(view: &BenchmarkView) -> String {
    let line = format!("run {} {}: {}", view.run, view.phase, counts_and_pace(view));
    [Some(line), trouble(view)].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Progress of a run and what blocks it, as a line.
pub fn progress(view: &BenchmarkView) -> String {
    [Some(counts_and_pace(view)), trouble(view)].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Progress, rate and time left of a run.
pub fn counts_and_pace(view: &BenchmarkView) -> String {
    let mut line = format!("{}/{} dialogues, {} failed", view.done(), view.planned, view.failed);
    if view.phase == RunPhase::Active {
        line.push_str(&format!(
            ", {}/s, {} tokens/s, ETA {}",
            figure(view.rate),
            figure(view.tokens_per_second),
            eta(view.eta_s)
        ));
    }
    line
}

/// What keeps a run, or a part of it, from continuing.
pub fn trouble(view: &BenchmarkView) -> Option<String> {
    let blocked = blocked(view);
    let trouble = view.trouble.as_deref().map(printable);
    let told: Vec<String> = [trouble, blocked].into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// How many models no worker can ask, and why.
pub fn blocked(view: &BenchmarkView) -> Option<String> {
    let reasons = view.blocked();
    let models: usize = reasons.iter().map(|(_, models)| models.len()).sum();
    if models == 0 {
        return None;
    }
    let noun = if models == 1 { "model" } else { "models" };
    if let [(reason, _)] = reasons.as_slice() {
        return Some(format!("blocked: {models} {noun} ({})", printable(reason)));
    }
    let mut told: Vec<String> = reasons
        .iter()
        .take(REASONS_SHOWN_MAX)
        .map(|(reason, models)| match models.as_slice() {
            [only] => format!("{only}: {}", printable(reason)),
            many => format!("{} of them: {}", many.len(), printable(reason)),
        })
        .collect();
    if reasons.len() > REASONS_SHOWN_MAX {
        told.push(format!("{} more reasons", reasons.len() - REASONS_SHOWN_MAX));
    }
    Some(format!("blocked: {models} {noun} ({})", told.join("; ")))
}

/// A time left, or `-` if unknown.
pub fn eta(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), duration)
}

/// One line per model of a run: how far it is, and what holds it up.
pub fn models(view: &BenchmarkView) -> Table {
    let mut table = Table::default()
        .left(["model"])
        .right(["dialogues", "scored", "failed", "left", "per s", "tokens/s", "ETA"])
        .right(["units waiting", "held", "suspect", "dead letters", "workers"])
        .left([""]);
    for model in &view.models {
        table.row(vec![
            printable(model.model.as_str()),
            model.planned.to_string(),
            model.scored.to_string(),
            model.failed.to_string(),
            model.remaining().to_string(),
            figure(model.pace.rate),
            figure(model.pace.tokens_per_second),
            eta(model.pace.eta_s),
            model.units_pending.to_string(),
            model.units_leased.to_string(),
            model.units_suspect.to_string(),
            model.units_dead.to_string(),
            model.workers.to_string(),
            model.blocked.as_deref().or(model.parked.as_deref()).map(printable).unwrap_or_default(),
        ]);
    }
    table
}

/// One line per worker.
pub fn workers(workers: &[WorkerView]) -> Table {
    let mut table = Table::default()
        .left(["worker", "host", "serves"])
        .right(["in flight", "limit", "dialogues", "unacknowledged", "parked", "seen"])
        .left([""]);
    for worker in workers {
        let status = &worker.status;
        table.row(vec![
            worker.worker.to_string(),
            printable(&status.host),
            printable(&shortened(&status.serves)),
            status.in_flight.to_string(),
            status.limit.to_string(),
            status.dialogues.to_string(),
            status.unacknowledged.to_string(),
            status.parked_records.to_string(),
            format!("{} ago", duration(worker.seen_ms_ago as f64 / 1e3)),
            remark(worker),
        ]);
    }
    table
}

/// Remarks about a worker besides its numbers.
pub fn remark(worker: &WorkerView) -> String {
    let status = &worker.status;
    let draining = worker.draining.then(|| "draining".to_owned());
    let keys = (!status.lacks.is_empty()).then(|| format!("lacks keys: {}", status.lacks.join("; ")));
    let told: Vec<String> = [draining, status.trouble.clone(), keys].into_iter().flatten().collect();
    printable(&told.join("; "))
}

/// The first of many names, and how many more there are.
pub fn shortened(names: &[String]) -> String {
    match names {
        [] => "-".to_owned(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

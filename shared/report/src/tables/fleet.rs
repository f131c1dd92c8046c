//! Runs and workers of a coordinator in lines and tables, for terminals and for the live page. The coordinator computes the
//! values.

use domain::ModelLabel;
use domain::control::{BenchmarkView, ModelView, RunPhase, WorkerView};
use domain::exchange::WorkerPhase;
use domain::text::listed;
use present::table::{Cell, Table, printable};

use crate::words::{duration, figure};

/// Maximum number of reasons in a line.
const REASONS_SHOWN_MAX: usize = 3;

/// Maximum number of models that a reason names.
const NAMES_SHOWN_MAX: usize = 3;

/// One line per benchmark.
pub fn runs(views: &[BenchmarkView]) -> Table {
    let mut table = Table::default()
        .left(["run", "planned", "name", "phase"])
        .right(["dialogues", "scored", "failed", "per s", "tokens/s", "ETA"])
        .left(["submitted by"])
        .right(["priority"])
        .left([""]);
    for view in views {
        let shares = view.priority > 0 && !view.phase.is_over();
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
            eta_of_run(view),
            if shares { printable(&view.submitter) } else { String::new() },
            if shares { view.priority.to_string() } else { String::new() },
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

/// Whose it is, and its share beside others of the same submitter; `None` where nobody submits to anybody, and when it is over.
pub fn share(view: &BenchmarkView) -> Option<String> {
    let known = !view.submitter.is_empty() && view.priority > 0 && !view.phase.is_over();
    known.then(|| format!("submitted by {}, priority {}", printable(&view.submitter), view.priority))
}

/// How many dialogues workers allow in flight per model, and why no more; `None` where nobody says, and when it is over.
pub fn limits(view: &BenchmarkView) -> Option<String> {
    let limited: Vec<&ModelView> = view.models.iter().filter(|model| model.limit > 0).collect();
    let told = limited.iter().map(|model| {
        let reasons: Vec<String> = model.limit_reasons.iter().map(|reason| printable(reason)).collect();
        let why = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        format!("{} {}{why}", printable(model.model.as_str()), model.limit)
    });
    let is_known = !limited.is_empty() && !view.phase.is_over();
    is_known.then(|| format!("in flight at most: {}", listed(told, NAMES_SHOWN_MAX)))
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
            ", ETA {}, {}/s, {} tokens/s",
            eta_of_run(view),
            figure(view.rate),
            figure(view.tokens_per_second)
        ));
    }
    line
}

/// The time left of a run, and how many models it leaves out: nothing is known of those that nobody can ask.
pub fn eta_of_run(view: &BenchmarkView) -> String {
    let blocked = view.models.iter().filter(|model| model.blocked.is_some()).count();
    match (view.eta_s, blocked) {
        (Some(_), 1) => format!("{} without 1 blocked model", eta(view.eta_s)),
        (Some(_), 2..) => format!("{} without {blocked} blocked models", eta(view.eta_s)),
        _ => eta(view.eta_s),
    }
}

/// What keeps a run, or a part of it, from continuing.
pub fn trouble(view: &BenchmarkView) -> Option<String> {
    let held_back = view.held_back().filter(|_| !view.phase.is_over());
    let held_back =
        held_back.map(|records| format!("{records} records of the fleet are not acknowledged yet"));
    let trouble = view.trouble.as_deref().map(printable);
    let told: Vec<String> = [trouble, blocked(view), held_back].into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Which models no worker can ask, and why. A reason is cut after its first part: the line of a model has all of it.
pub fn blocked(view: &BenchmarkView) -> Option<String> {
    let reasons = view.blocked();
    let short = |reason: &str| printable(reason.split("; ").next().unwrap_or(reason));
    let told = match reasons.as_slice() {
        [] => return None,
        [(reason, models)] if models.len() == 1 => format!("{} ({})", named(models), short(reason)),
        [(reason, models)] => format!("{} models, {} ({})", models.len(), named(models), short(reason)),
        reasons => {
            let models: usize = reasons.iter().map(|(_, models)| models.len()).sum();
            let shown = reasons.iter().take(REASONS_SHOWN_MAX);
            let mut told: Vec<String> =
                shown.map(|(reason, models)| format!("{}: {}", named(models), short(reason))).collect();
            if reasons.len() > REASONS_SHOWN_MAX {
                told.push(format!("{} more reasons", reasons.len() - REASONS_SHOWN_MAX));
            }
            format!("{models} models ({})", told.join("; "))
        }
    };
    Some(format!("blocked: {told}"))
}

/// The first of some models, and how many more there are.
fn named(models: &[&ModelLabel]) -> String {
    listed(models.iter().map(|model| printable(model.as_str())), NAMES_SHOWN_MAX)
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

/// One line per pool of a run's models; `None` where no conductor tells of any.
pub fn pools(view: &BenchmarkView) -> Option<Table> {
    let mut table = Table::default()
        .left(["pool", "model"])
        .right(["GPUs", "left", "GPU-hours", "failures"])
        .left(["now", "last failure"]);
    for pool in &view.pools {
        table.row(vec![
            printable(&pool.pool),
            printable(&pool.model),
            pool.gpus.to_string(),
            pool.left.map_or_else(|| "?".to_owned(), |left| left.to_string()),
            figure(pool.gpu_hours.total()),
            pool.failures.to_string(),
            printable(&pool.words()),
            pool.last_failure.as_deref().map(printable).unwrap_or_default(),
        ]);
    }
    (!view.pools.is_empty()).then_some(table)
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
    let loading = (status.phase == Some(WorkerPhase::Loading)).then(|| {
        let what = if status.expects.is_empty() { String::new() } else { shortened(&status.expects) + " " };
        format!("loading {what}for {}", duration(status.phase_s as f64))
    });
    let keys = (!status.lacks.is_empty()).then(|| format!("lacks keys: {}", status.lacks.join("; ")));
    let told: Vec<String> = [draining, loading, status.trouble.clone(), keys].into_iter().flatten().collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str, blocked: Option<&str>) -> ModelView {
        let blocked = blocked.map(str::to_owned);
        ModelView { model: name.into(), planned: 10, blocked, ..ModelView::default() }
    }

    #[test]
    fn who_is_blocked_is_named_and_not_what_workers_serve() {
        let served = "no worker serves it; workers serve x, y, z and 9 more";
        let view = |models| BenchmarkView { models, ..BenchmarkView::default() };
        assert_eq!(blocked(&view(vec![model("a", None)])), None);
        let one = view(vec![model("a", None), model("b", Some(served))]);
        assert_eq!(blocked(&one).unwrap(), "blocked: b (no worker serves it)");
        let mut models: Vec<ModelView> = (0..9).map(|n| model(&format!("m{n}"), Some(served))).collect();
        assert_eq!(
            blocked(&view(models.clone())).unwrap(),
            "blocked: 9 models, m0, m1, m2 and 6 more (no worker serves it)"
        );
        models.push(model("p", Some("parked: unauthorized")));
        assert_eq!(
            blocked(&view(models)).unwrap(),
            "blocked: 10 models (m0, m1, m2 and 6 more: no worker serves it; p: parked: unauthorized)"
        );
    }

    #[test]
    fn a_time_left_says_whom_it_leaves_out() {
        let view = |eta_s, blocked: usize| BenchmarkView {
            eta_s,
            phase: RunPhase::Active,
            models: (0..blocked).map(|_| model("m", Some("no worker serves it"))).collect(),
            ..BenchmarkView::default()
        };
        assert_eq!(eta_of_run(&view(Some(65.0), 0)), "1m 05s");
        assert_eq!(eta_of_run(&view(Some(65.0), 1)), "1m 05s without 1 blocked model");
        assert!(counts_and_pace(&view(Some(65.0), 3)).contains(", ETA 1m 05s without 3 blocked models, 0/s"));
        assert_eq!(eta_of_run(&view(None, 3)), "-");
    }

    #[test]
    fn limits_are_told_with_their_reasons_while_a_run_lasts() {
        let limited = |name: &str, limit, reasons: &[&str]| ModelView {
            limit,
            limit_reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
            ..model(name, None)
        };
        let models = vec![
            limited("a", 260, &["server-queue"]),
            model("b", None),
            limited("c", 40, &["fixed", "growing"]),
        ];
        let view = |phase| BenchmarkView { models: models.clone(), phase, ..BenchmarkView::default() };
        let told = limits(&view(RunPhase::Active)).unwrap();
        assert_eq!(told, "in flight at most: a 260 (server-queue), c 40 (fixed, growing)");
        assert_eq!(limits(&view(RunPhase::Finished)), None);
        assert_eq!(limits(&BenchmarkView { phase: RunPhase::Active, ..BenchmarkView::default() }), None);
    }

    #[test]
    fn records_that_nobody_acknowledges_are_told_when_they_are_many() {
        let view =
            |unacknowledged, phase| BenchmarkView { unacknowledged, phase, ..BenchmarkView::default() };
        assert_eq!(trouble(&view(999, RunPhase::Active)), None);
        let told = trouble(&view(12_000, RunPhase::Active)).unwrap();
        assert_eq!(told, "12000 records of the fleet are not acknowledged yet");
        assert_eq!(trouble(&view(12_000, RunPhase::Finished)), None);
    }

    #[test]
    fn a_worker_whose_server_loads_says_so() {
        let status = domain::exchange::WorkerStatus {
            expects: vec!["org/large".to_owned()],
            phase: Some(WorkerPhase::Loading),
            phase_s: 725,
            ..Default::default()
        };
        let worker =
            WorkerView { worker: "w".into(), status: status.into(), seen_ms_ago: 0, draining: false };
        assert_eq!(remark(&worker), "loading org/large for 12m 05s");
    }
}

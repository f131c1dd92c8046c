//! Runs and workers of a coordinator in lines and tables, for terminals and for the live page. The coordinator computes the
//! values.

use domain::ModelLabel;
use domain::control::{BenchmarkView, ModelView, RunPhase, WorkerView};
use domain::exchange::{Calls, Retries, WorkerPhase};
use domain::text::listed;

use crate::costs::{Money, Prices};
use crate::table::{Cell, Table, printable};
use crate::words::{duration, figure};

/// Maximum number of reasons in a line.
const REASONS_SHOWN_MAX: usize = 3;

/// Maximum number of models that a reason names.
const NAMES_SHOWN_MAX: usize = 3;

/// One line per benchmark; what is known of none has no column.
pub fn runs(views: &[BenchmarkView]) -> Table {
    let is_moving = views.iter().any(BenchmarkView::goes_on);
    let shares =
        |view: &&BenchmarkView| view.priority > 0 && !view.submitter.is_empty() && !view.phase.is_over();
    let is_shared = views.iter().any(|view| shares(&view));
    let mut table =
        Table::default().left(["run", "started", "name", "state"]).right(["dialogues", "scored", "failed"]);
    if is_moving {
        table = table.right(["per s", "tokens/s", "ETA"]);
    }
    if is_shared {
        table = table.left(["submitted by"]).right(["priority"]);
    }
    let mut table = table.left([""]);
    for view in views {
        let mut row = vec![
            view.run.to_string(),
            view.created_at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            printable(&view.name),
            view.state().to_owned(),
            view.planned.to_string(),
            view.scored.to_string(),
            view.failed.to_string(),
        ];
        if is_moving {
            row.extend([speed(view.rate), speed(view.tokens_per_second), eta_of_run(view)]);
        }
        if is_shared {
            let of = Some(view).filter(shares);
            row.push(of.map(|view| printable(&view.submitter)).unwrap_or_default());
            row.push(of.map(|view| view.priority.to_string()).unwrap_or_default());
        }
        row.push(trouble(view).unwrap_or_default());
        table.row(row);
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
    let line = format!("run {} {}: {}", view.run, view.state(), counts_and_pace(view));
    joined([Some(line), trouble(view)]).unwrap_or_default()
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

/// What it has used so far: GPU-hours of its pools, and the money for tokens at these prices; `None` where neither is known.
pub fn spent(view: &BenchmarkView, prices: &Prices) -> Option<String> {
    let hours: f64 = view.pools.iter().map(|pool| pool.gpu_hours.total()).sum();
    let hours = (hours > 0.0).then(|| format!("{} GPU-hours of its pools", figure(hours)));
    let of_model = |model: &ModelView| prices.spent(model.billed_as.as_deref(), &model.usage);
    let money = Money::total(view.models.iter().map(of_model));
    let money = money.map(|money| format!("{money} {} for tokens", prices.currency()));
    let told: Vec<String> = [hours, money].into_iter().flatten().collect();
    (!told.is_empty()).then(|| format!("spent so far: {}", told.join(", ")))
}

/// Progress of a run and what blocks it, as a line.
pub fn progress(view: &BenchmarkView) -> String {
    joined([Some(counts_and_pace(view)), trouble(view)]).unwrap_or_default()
}

/// Progress, rate and time left of a run.
pub fn counts_and_pace(view: &BenchmarkView) -> String {
    let mut line = format!("{}/{} dialogues, {} failed", view.done(), view.planned, view.failed);
    if view.phase == RunPhase::Active && view.goes_on() {
        let calls = all_calls(view);
        let waiting = calls.waiting + calls.retries.iter().map(|retries| retries.calls).sum::<u64>();
        for (count, what) in [(calls.in_flight, "in flight"), (waiting, "waiting")] {
            if count > 0 {
                line.push_str(&format!(", {count} {what}"));
            }
        }
        line.push_str(&format!(
            ", ETA {}, {}/s, {} tokens/s",
            eta_of_run(view),
            speed(view.rate),
            speed(view.tokens_per_second)
        ));
    }
    line
}

/// The time left of a run, and which models it leaves out: nothing is known of those that do not move.
pub fn eta_of_run(view: &BenchmarkView) -> String {
    let stands = |model: &&ModelView| model.remaining() > 0 && model.pace.eta_s.is_none();
    let standing: Vec<&ModelLabel> = view.models.iter().filter(stands).map(|model| &model.model).collect();
    match view.eta_s {
        Some(_) if !standing.is_empty() => {
            format!("at least {} without {}", eta(view.eta_s), named(&standing))
        }
        known => eta(known),
    }
}

/// What keeps a run, or a part of it, from continuing.
pub fn trouble(view: &BenchmarkView) -> Option<String> {
    let held_back = view.held_back().filter(|_| !view.phase.is_over());
    let held_back =
        held_back.map(|records| format!("{records} records of the fleet are not acknowledged yet"));
    let trouble = view.trouble.as_deref().map(printable);
    joined([trouble, blocked(view), retries(view), held_back])
}

/// Which calls are made again, why, since when, and how often; `None` while all are answered, and when it is over.
pub fn retries(view: &BenchmarkView) -> Option<String> {
    let told = all_calls(view).retries.into_iter().map(|Retries { why, calls, since, attempt }| {
        let what = if calls == 1 { "1 call waits".to_owned() } else { format!("{calls} calls wait") };
        format!("{what}: {} since {} UTC, attempt {attempt}", printable(&why), since.strftime("%H:%M"))
    });
    joined(told.map(|told| Some(told).filter(|_| !view.phase.is_over())))
}

/// The calls of all its models.
fn all_calls(view: &BenchmarkView) -> Calls {
    let mut all = Calls::default();
    view.models.iter().for_each(|model| all.add(&model.calls));
    all
}

/// What there is to tell; `None` if there is nothing.
fn joined(told: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let told: Vec<String> = told.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// How much comes in a second; `-` where nothing has come in the last minute.
fn speed(per_second: f64) -> String {
    if per_second > 0.0 { figure(per_second) } else { "-".to_owned() }
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

/// One line per model of a run: how far it is, and what holds it up; of a fleet that works at it, also what becomes of its units.
pub fn models(view: &BenchmarkView) -> Table {
    let in_fleet = view.condition.is_none() && !view.phase.is_over();
    let table = Table::default().left(["model"]).right([
        "dialogues",
        "scored",
        "failed",
        "in flight",
        "per s",
        "tokens/s",
        "ETA",
    ]);
    let mut table = match in_fleet {
        true => table.right(["units waiting", "held", "suspect", "dead letters", "workers"]),
        false => table,
    }
    .left([""]);
    for model in &view.models {
        let calls = &model.calls;
        let in_flight = (calls.in_flight > 0 || calls.all_fail()).then_some(calls.in_flight);
        let mut row = vec![
            Cell::from(printable(model.model.as_str())),
            Cell::Count(model.planned),
            Cell::Count(model.scored),
            Cell::Count(model.failed),
            Cell::count(in_flight),
            Cell::from(speed(model.pace.rate)),
            Cell::from(speed(model.pace.tokens_per_second)),
            Cell::from(eta(model.pace.eta_s)),
        ];
        if in_fleet {
            let units = [model.units_pending, model.units_leased, model.units_suspect, model.units_dead];
            row.extend(units.into_iter().chain([model.workers]).map(Cell::Count));
        }
        let why = model.blocked.as_deref().or(model.parked.as_deref());
        row.push(why.map(printable).unwrap_or_default().into());
        table.row(row);
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
fn remark(worker: &WorkerView) -> String {
    let status = &worker.status;
    let draining = worker.draining.then(|| "draining".to_owned());
    let loading = (status.phase == Some(WorkerPhase::Loading)).then(|| {
        let what = if status.expects.is_empty() { String::new() } else { shortened(&status.expects) + " " };
        format!("loading {what}for {}", duration(status.phase_s as f64))
    });
    let keys = (!status.lacks.is_empty()).then(|| format!("lacks keys: {}", status.lacks.join("; ")));
    printable(&joined([draining, loading, status.trouble.clone(), keys]).unwrap_or_default())
}

/// The first of many names, and how many more there are.
fn shortened(names: &[String]) -> String {
    match names {
        [] => "-".to_owned(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use domain::ModelUsage;
    use domain::control::Pace;
    use domain::pools::{PoolState, UsageHours};

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
    fn what_was_spent_is_told_where_it_is_known() {
        let table = "currency = 'EUR'\n[[tokens]]\nmodels = ['paid']\ninput = 2\noutput = 10\nas_of = '2026-01-02'\nsource = 's'\n";
        let prices = Prices::parse(table).unwrap();
        let mut view = BenchmarkView { models: vec![model("own", None)], ..BenchmarkView::default() };
        assert_eq!(spent(&view, &prices), None);
        let usage = ModelUsage { dialogues: 1, prompt_tokens: 1_000_000, ..ModelUsage::default() };
        view.models.push(ModelView { billed_as: Some("paid".to_owned()), usage, ..model("paid", None) });
        assert_eq!(spent(&view, &prices).unwrap(), "spent so far: > 2.00 EUR for tokens");
        let gpu_hours = UsageHours { work: 10.0, load: 2.5, ..UsageHours::default() };
        view.pools.push(PoolState {
            pool: "p".to_owned(),
            model: "m".to_owned(),
            gpus: 1,
            servers: Vec::new(),
            wait: None,
            is_given_up: false,
            failures: 0,
            last_failure: None,
            left: None,
            gpu_hours,
            load_s: 0,
            loading_s: None,
            not_starting: None,
        });
        assert_eq!(
            spent(&view, &prices).unwrap(),
            "spent so far: 13 GPU-hours of its pools, > 2.00 EUR for tokens"
        );
    }

    #[test]
    fn a_time_left_says_whom_it_leaves_out() {
        let moving = ModelView { pace: Pace { eta_s: Some(65.0), ..Pace::default() }, ..model("a", None) };
        let done = ModelView { scored: 10, ..model("b", None) };
        let silent = || model("c", None);
        let blocked = |n: usize| (0..n).map(|n| model(&format!("m{n}"), Some("no worker serves it")));
        let view = |models: Vec<ModelView>| BenchmarkView {
            eta_s: models.iter().find_map(|model| model.pace.eta_s),
            phase: RunPhase::Active,
            models,
            ..BenchmarkView::default()
        };
        assert_eq!(eta_of_run(&view(vec![moving.clone(), done.clone()])), "1m 05s");
        assert_eq!(eta_of_run(&view(vec![moving.clone(), silent(), done])), "at least 1m 05s without c");
        let many = view([moving, silent()].into_iter().chain(blocked(3)).collect());
        let told = counts_and_pace(&many);
        assert!(told.contains(", ETA at least 1m 05s without c, m0, m1 and 1 more, -/s"), "{told}");
        assert_eq!(eta_of_run(&view(blocked(3).collect())), "-");
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
    fn calls_that_are_made_again_are_told_with_their_reason_until_it_is_over() {
        let retries = |why: &str, calls, minute, attempt| Retries {
            why: why.to_owned(),
            calls,
            since: format!("2026-11-22T10:{minute}:07Z").parse().unwrap(),
            attempt,
        };
        let failing = |name: &str, in_flight, retries| ModelView {
            calls: Calls { in_flight, waiting: 0, retries },
            ..model(name, None)
        };
        let models = vec![
            failing("a", 2, vec![retries("connection refused", 3, 50, 5)]),
            failing(
                "b",
                0,
                vec![retries("connection refused", 1, 48, 2), retries("rate-limited (HTTP 429)", 1, 59, 3)],
            ),
        ];
        let view = |phase| BenchmarkView { models: models.clone(), phase, ..BenchmarkView::default() };
        let expected = "4 calls wait: connection refused since 10:48 UTC, attempt 5; \
            1 call waits: rate-limited (HTTP 429) since 10:59 UTC, attempt 3";
        assert_eq!(trouble(&view(RunPhase::Active)).as_deref(), Some(expected));
        assert_eq!(trouble(&view(RunPhase::Finished)), None);
        let line = counts_and_pace(&view(RunPhase::Active));
        assert_eq!(line, "0/0 dialogues, 0 failed, 2 in flight, 5 waiting, ETA -, -/s, - tokens/s");
        let shown = |row: usize| super::models(&view(RunPhase::Active)).rows()[row][4].shown();
        assert_eq!((shown(0).as_str(), shown(1).as_str()), ("2", "0"));
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

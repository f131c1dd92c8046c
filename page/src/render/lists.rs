//! The list of benchmarks, and the list of workers.

use axum::response::Html;
use domain::control::{BenchmarkView, WorkerView};
use domain::exchange::WorkerStatus;
use maud::{Markup, html};
use report::html::tables::{LiveRow, live};
use report::table::printable;
use report::tables::fleet;

use super::frame::{form_token, frame, section};
use crate::admission::Visitor;
use crate::cache::{PageState, Section};
use crate::render::frame::path_of;

/// The page of benchmarks.
pub(crate) fn benchmarks(visitor: &Visitor, state: &PageState) -> Html<String> {
    let main = html! { h1 { "Benchmarks" } (section(state, "runs")) };
    frame("Benchmarks", Some(visitor), Some("/live"), &main)
}

/// The newest first, each of which leads to its page.
pub(crate) fn of_benchmarks(benchmarks: &[BenchmarkView]) -> Markup {
    if benchmarks.is_empty() {
        return html! { p { "There are no benchmarks. " code { "kgfleet submit" } " starts one." } };
    }
    let mut newest = benchmarks.to_vec();
    newest.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| b.run.cmp(&a.run)));
    let table = fleet::runs(&newest).titled("Benchmarks");
    live(&table, &|row| {
        let run = &newest[row].run;
        LiveRow { key: run.as_str(), link: Some(path_of(run)), ..LiveRow::default() }
    })
}

/// The page of workers.
pub(crate) fn workers(visitor: &Visitor, state: &PageState, notice: Option<&str>) -> Html<String> {
    let main = html! {
        h1 { "Workers" }
        @if let Some(words) = notice { p.done role="status" { (words) } }
        @if visitor.steers() {
            // Which workers there are changes; the form around them does not.
            form method="post" action="/workers/drain" { (form_token(visitor)) (section(state, "drain")) }
        }
        (section(state, "workers"))
    };
    frame("Workers", Some(visitor), Some("/workers/live"), &main)
}

pub(crate) fn sections_of_workers(workers: &[WorkerView], steers: bool) -> Vec<Section> {
    let mut sections = vec![Section::new("workers", of_workers(workers))];
    if steers {
        sections.push(Section::new("drain", choice(workers)));
    }
    sections
}

fn of_workers(workers: &[WorkerView]) -> Markup {
    let there = workers.iter().filter(|worker| !is_lost(worker)).count();
    html! {
        @if workers.is_empty() {
            p { "There are no workers. " code { "kgfleet worker" } " starts one." }
        } @else {
            p.note { (there) @if there == 1 { " worker, " } @else { " workers, " }
                (sum(workers, |status| status.in_flight.into())) " dialogues in flight, "
                (sum(workers, |status| status.unacknowledged)) " records not acknowledged." }
            (live(&fleet::workers(workers).titled("Workers"), &|at| LiveRow {
                key: workers[at].worker.as_str(),
                ..LiveRow::default()
            }))
        }
    }
}

/// Whether it is shown only because it died.
fn is_lost(worker: &WorkerView) -> bool {
    worker.status.trouble.as_deref().is_some_and(|why| why.starts_with(coordinator::LOST))
}

fn sum(workers: &[WorkerView], of: fn(&WorkerStatus) -> u64) -> u64 {
    workers.iter().map(|worker| of(&worker.status)).sum()
}

/// The workers that can be drained.
fn choice(workers: &[WorkerView]) -> Markup {
    let can_be = |worker: &&WorkerView| !worker.draining && !is_lost(worker);
    html! {
        @if workers.iter().any(|worker| can_be(&worker)) {
            details { summary { "Drain a worker" }
                p { label { "Worker " select name="worker" {
                    @for worker in workers.iter().filter(can_be) {
                        option value=(worker.worker.as_str()) { (printable(worker.worker.as_str())) }
                    }
                } } " " button type="submit" { "Drain" } }
                p.note { "It finishes what it holds, takes nothing new, and ends." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_died_is_shown_and_neither_counted_nor_drained() {
        let worker = |name: &str, trouble: Option<String>| WorkerView {
            worker: name.into(),
            status: WorkerStatus { trouble, ..WorkerStatus::default() }.into(),
            seen_ms_ago: 1,
            draining: false,
        };
        let why = format!("{} it went away without a word", coordinator::LOST);
        let workers =
            [worker("well", None), worker("ill", Some("its disk is full".into())), worker("dead", Some(why))];
        let shown = of_workers(&workers).into_string();
        for part in ["2 workers, ", ">dead<", "it went away without a word"] {
            assert!(shown.contains(part), "`{part}` is not in {shown}");
        }
        let choice = choice(&workers).into_string();
        assert!(choice.contains("\"ill\"") && !choice.contains("dead"), "{choice}");
    }
}

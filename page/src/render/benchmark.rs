//! One benchmark: how far it is, who leads, where it stands in every row, what failed.

use std::cmp::Reverse;
use std::collections::HashMap;

use axum::response::Html;
use domain::RunId;
use domain::control::{BenchmarkView, CellView, ModelView, RowKind, RowView, RunPhase};
use maud::{Markup, html};
use report::html::grid::{GridLine, Square, grid};
use report::html::tables::{LiveRow, live, table};
use report::table::{Cell, Table, printable};
use report::tables::fleet;
use report::words::duration;

use super::board::{board, finder};
use super::frame::{form_token, frame, section};
use crate::admission::Visitor;
use crate::cache::{PageState, Section};
use crate::render::board::{Shown, curve, speed};
use crate::render::frame::{path_of, path_with};
use crate::site::Links;

/// Screen readers announce progress in steps of this many per cent.
const SPOKEN_STEP: u64 = 10;

/// The page; `notice` is what a command did a moment ago.
pub(crate) fn page(
    visitor: &Visitor,
    run: &RunId,
    state: &PageState,
    links: &Links,
    notice: Option<&str>,
) -> Html<String> {
    let main = html! {
        h1 { (printable(&state.title)) }
        @if let Some(words) = notice { p.done role="status" { (words) } }
        (section(state, "progress"))
        nav.take aria-label="Take along" {
            a href=(format!("{}/scores.csv", path_of(run))) download { "Scores (CSV)" } " "
            a href=(format!("{}/records.jsonl", path_of(run))) download { "Records (JSON lines)" }
            @if let Some(dashboard) = links.dashboard_of(run) { " " a href=(dashboard) rel="noreferrer" { "Dashboard" } }
        }
        @if visitor.steers() {
            form.controls method="post" action={ (path_of(run)) "/command" } aria-label="Commands" {
                (form_token(visitor)) (section(state, "controls"))
            }
        }
        (finder())
        @for id in ["leaders", "grid", "speed", "stages", "outcomes", "models", "pools", "history"] { (section(state, id)) }
    };
    frame(&state.title, Some(visitor), Some(&format!("{}/live", path_of(run))), &main)
}

pub(crate) fn sections(shown: &Shown) -> Vec<Section> {
    let view = &shown.view;
    vec![
        Section::new("progress", progress(view)),
        Section::new("controls", controls(view)),
        Section::new("leaders", board(shown)),
        Section::new("grid", heat(shown)),
        Section::new("speed", speed(view, &shown.links.prices)),
        Section::new("stages", runs(view)),
        Section::new("outcomes", outcomes(view)),
        Section::new("models", models(view)),
        Section::new("pools", pools(view)),
        Section::new("history", history(view)),
    ]
}

fn progress(view: &BenchmarkView) -> Markup {
    let share = 100 * view.done() / view.planned.max(1);
    let spoken = format!("{}, {} per cent done", view.phase, share / SPOKEN_STEP * SPOKEN_STEP);
    html! {
        p.head { span class={ "phase " (view.phase) } { (view.phase) } " " strong { (printable(&view.name)) }
            span.note { " planned " (view.created_at.strftime("%Y-%m-%d %H:%M:%S")) " UTC" } }
        progress max=(view.planned.max(1)) value=(view.done()) aria-label="Dialogues done" data-spoken=(spoken) { (share) " %" }
        p.counts { (fleet::counts_and_pace(view))
            @if let Some(elapsed) = view.elapsed_s { ", " (duration(elapsed)) @if !view.phase.is_over() { " so far" } } }
        @if let Some(share) = fleet::share(view) { p.note { (share) } }
        (curve(view))
        @if let Some(trouble) = fleet::trouble(view) { p.warning { (trouble) } }
        @for note in &view.notes { p.warning { (printable(note)) } }
    }
}

/// The commands that the run's phase allows.
fn controls(view: &BenchmarkView) -> Markup {
    let button =
        |action: &str, words: &str| html! { button type="submit" name="action" value=(action) { (words) } };
    html! {
        @match view.phase {
            RunPhase::Preparing | RunPhase::Active => (button("pause", "Pause")),
            RunPhase::Paused | RunPhase::Cancelled => (button("resume", "Resume")),
            RunPhase::Finished => {}
        }
        @if view.failed > 0 {
            label { "Failed with " select name="cause" {
                option value="" { "any cause" }
                @for (cause, count) in &view.failures { option value=(cause) { (cause) " (" (count) ")" } }
            } }
            (button("retry", "Ask again"))
        }
        // What loses work takes two steps.
        @if !view.phase.is_over() { details { summary { "Cancel …" } (button("cancel", "Cancel the run")) } }
    }
}

/// The scores of models by task.
fn heat(shown: &Shown) -> Markup {
    let Shown { view, standings, .. } = shown;
    if view.cells.is_empty() {
        return html! {};
    }
    // Results are there when they are known.
    let has_cells = |row: &&RowView| view.cells.iter().any(|cell| cell.task == row.name);
    let rows: Vec<&RowView> = view.rows.iter().filter(has_cells).collect();
    let cells: HashMap<(&str, &str), &CellView> =
        view.cells.iter().map(|cell| ((cell.model.as_str(), cell.task.as_str()), cell)).collect();
    let square = |cell: &CellView, row: &RowView| {
        let is_task = row.kind == RowKind::Task;
        let link = [("model", cell.model.as_str()), ("task", cell.task.as_str())];
        let done = cell.scored + cell.failed;
        Square {
            mean: cell.mean,
            instead: Some(if done == 0 { "·".to_owned() } else { format!("{done}/{}", cell.planned) }),
            tip: Some(format!("{done} of {} done, {} failed", cell.planned, cell.failed)),
            gap: cell.failed + cell.missing > 0 && cell.mean.is_some(),
            // Shades are for scores, of which more is better.
            plain: !is_task,
            filled: Some(done as f64 / cell.planned.max(1) as f64),
            link: (is_task && done > 0).then(|| path_with(&view.run, "dialogues", &link)),
        }
    };
    // In the order of the board, so that a model is found at the same place.
    let placed = standings.placed();
    let models = placed.iter().filter_map(|(standing, _)| Some((shown.model(&standing.model)?, standing)));
    let square_of = |model: &ModelView, row: &RowView| {
        let cell = cells.get(&(model.model.as_str(), row.name.as_str())).filter(|cell| cell.planned > 0)?;
        Some(square(cell, row))
    };
    let lines: Vec<GridLine<'_>> = models
        .map(|(model, standing)| GridLine {
            name: model.model.as_str(),
            mean: standing.contender.value,
            squares: rows.iter().map(|row| square_of(model, row)).collect(),
        })
        .collect();
    let names: Vec<(&str, &str)> = rows.iter().map(|row| (row.name.as_str(), "")).collect();
    let is_of_tasks = rows.iter().all(|row| row.kind == RowKind::Task);
    html! {
        h2 { @if is_of_tasks { "Tasks" } @else { "Stages and results" } }
        (grid(&view.headline.words, &names, &lines))
        p.note {
            @if is_of_tasks { "A number leads to its dialogues. " }
            "The bar below a number shows how much of its plan is done; *: some dialogues have no score."
        }
    }
}

/// The runs of a judged benchmark, each of which leads to its page.
fn runs(view: &BenchmarkView) -> Markup {
    let table = fleet::stage_runs(view).titled("Runs of the stages");
    html! {
        @if !view.runs.is_empty() {
            h2 { "Runs of the stages" }
            (live(&table, &|row| {
                let run = &view.runs[row].name;
                LiveRow { key: run.as_str(), link: Some(path_of(run)), ..LiveRow::default() }
            }))
        }
    }
}

/// How many dialogues were scored and failed, and the most frequent failures.
fn outcomes(view: &BenchmarkView) -> Markup {
    let mut shares =
        Table::default().left(["outcome"]).right(["dialogues", "share of the plan"]).titled("Outcomes");
    let mut row = |name: &str, count: u64| {
        let share = 100.0 * count as f64 / view.planned.max(1) as f64;
        shares.row([Cell::from(name), Cell::Count(count), Cell::Told(format!("{share:.1} %"), Some(share))]);
    };
    row("scored", view.scored);
    let mut failures = view.failures.clone();
    failures.sort_by_key(|(_, count)| Reverse(*count));
    for (cause, count) in &failures {
        row(cause.as_str(), *count);
    }
    row("no record yet", view.planned.saturating_sub(view.done()));
    let mut reasons = Table::default()
        .right(["dialogues"])
        .left(["model", "cause", "message"])
        .titled("Reasons of failures");
    for refusal in &view.refusals {
        reasons.row([
            Cell::Count(refusal.dialogues),
            Cell::from(refusal.model.as_str()),
            Cell::from(refusal.cause.as_str()),
            Cell::from(refusal.message.as_str()),
        ]);
    }
    html! {
        h2 { "Outcomes" }
        (table(&shares))
        @if !view.refusals.is_empty() { h3 { "Why dialogues failed" } div.words { (table(&reasons)) } }
    }
}

fn models(view: &BenchmarkView) -> Markup {
    let models = fleet::models(view).titled("Models and their units");
    let row = |at: usize| LiveRow::of_model(view.models[at].model.as_str());
    html! {
        @if !view.models.is_empty() { details #units { summary { "Models and their units" } (live(&models, &row)) } }
    }
}

fn pools(view: &BenchmarkView) -> Markup {
    let pools = fleet::pools(view).map(|pools| pools.titled("Pools of servers"));
    html! {
        @if let Some(pools) = pools { h2 { "Pools" } div.words { (table(&pools)) } }
    }
}

fn history(view: &BenchmarkView) -> Markup {
    html! {
        @if !view.history.is_empty() {
            h2 { "History" }
            ul.history { @for entry in view.history.iter().rev() {
                li { (entry.at.strftime("%Y-%m-%d %H:%M:%S")) " " (printable(&entry.what)) " by " (printable(&entry.who)) }
            } }
        }
    }
}

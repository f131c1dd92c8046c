//! One benchmark: how far it is, who leads, where it stands in every row, what failed.

use std::cmp::Reverse;
use std::collections::HashMap;

use axum::response::Html;
use domain::RunId;
use domain::control::{BenchmarkView, CellView, ModelView, RowKind, RowView, RunPhase};
use maud::{Markup, html};
use present::table::{Cell, Table, printable};
use report::html::grid::{GridHead, GridLine, Square, grid};
use report::html::tables::{linked, table};
use report::tables::fleet;
use report::views::scores::mean_of_model;
use report::words::figure;

use super::frame::{form_token, frame, section};
use super::paths::{path_of, path_with};
use crate::intervals::IntervalsByModel;
use crate::section::{PageState, Section};
use crate::visitor::Visitor;

/// Screen readers announce progress in steps of this many per cent.
const SPOKEN_STEP: u64 = 10;

/// The data of a run's page.
pub(crate) struct Shown {
    pub view: BenchmarkView,
    pub intervals: IntervalsByModel,
}

pub(crate) fn page(visitor: &Visitor, run: &RunId, state: &PageState, done: &str) -> Html<String> {
    let main = html! {
        h1 { (printable(&state.title)) }
        @if let Some(words) = in_words(done) { p.done role="status" { (words) } }
        (section(state, "progress"))
        @if visitor.steers() {
            form.controls method="post" action={ (path_of(run)) "/command" } aria-label="Commands" {
                (form_token(visitor)) (section(state, "controls"))
            }
        }
        @for id in ["leaders", "grid", "stages", "outcomes", "models", "history"] { (section(state, id)) }
    };
    frame(&state.title, Some(visitor), Some(&format!("{}/live", path_of(run))), &main)
}

/// The last command in words. `done` comes from the address, so only a number of it is shown.
fn in_words(done: &str) -> Option<String> {
    match done {
        "pause" => Some("The run is paused: nothing more is handed out.".to_owned()),
        "resume" => Some("The run goes on.".to_owned()),
        "cancel" => Some("The run is cancelled.".to_owned()),
        number => {
            number.parse::<u64>().ok().map(|count| format!("{count} failed dialogues are asked again."))
        }
    }
}

pub(crate) fn sections(shown: &Shown) -> Vec<Section> {
    let view = &shown.view;
    vec![
        Section::new("progress", progress(view)),
        Section::new("controls", controls(view)),
        Section::new("leaders", leaders(shown)),
        Section::new("grid", heat(shown)),
        Section::new("stages", runs(view)),
        Section::new("outcomes", outcomes(view)),
        Section::new("models", models(view)),
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
        p.counts { (fleet::counts_and_pace(view)) }
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

/// The models, best first, with progress and scores of each.
fn leaders(shown: &Shown) -> Markup {
    let Shown { view, intervals, .. } = shown;
    if view.models.is_empty() {
        return html! {};
    }
    let mut order: Vec<&ModelView> = view.models.iter().collect();
    order.sort_by(|a, b| value(b).total_cmp(&value(a)));
    let headline = &view.headline;
    let ends: &[&str] = if headline.intervals { &["low", "high"] } else { &[] };
    let columns = Table::default()
        .right([""])
        .left(["model"])
        .right([headline.words.as_str()])
        .right(ends.iter().copied());
    let columns = columns.right(["done", "failed", "per s", "ETA"]).left([""]);
    let mut board = columns.titled("Leader board");
    for (place, model) in order.iter().enumerate() {
        let interval = intervals.get(&model.model);
        let rank = if model.mean.value.is_some() { Cell::Count(place as u64 + 1) } else { Cell::Empty };
        let done = model.scored + model.failed;
        let head =
            [rank, Cell::from(model.model.as_str()), Cell::Told(mean_of_model(model), model.mean.value)];
        let ends = [interval.map(|interval| interval.low), interval.map(|interval| interval.high)];
        let ends = ends.into_iter().filter(|_| headline.intervals).map(|end| Cell::number(end, 3));
        let rest = [
            Cell::Told(format!("{done}/{}", model.planned), Some(done as f64)),
            Cell::Count(model.failed),
            Cell::Told(figure(model.pace.rate), Some(model.pace.rate)),
            Cell::Told(fleet::eta(model.pace.eta_s), model.pace.eta_s),
            Cell::from(model.blocked.as_deref().or(model.parked.as_deref()).unwrap_or_default()),
        ];
        board.row(head.into_iter().chain(ends).chain(rest));
    }
    html! {
        h2 { "Leader board so far" }
        (table(&board))
        @if !headline.intervals { p.note { "The first of the results below." } }
        @else { p.note { "Mean of the means of the tasks, each counting the same. Low and high: 95 % interval of it, for these tasks "
            "with other exercises; it follows the run at some distance." } }
    }
}

fn value(model: &ModelView) -> f64 {
    model.mean.value.unwrap_or(f64::NEG_INFINITY)
}

/// The scores of models by task.
fn heat(shown: &Shown) -> Markup {
    let view = &shown.view;
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
    let mut models: Vec<&ModelView> = view.models.iter().collect();
    models.sort_by(|a, b| value(b).total_cmp(&value(a)));
    let square_of = |model: &ModelView, row: &RowView| {
        let cell = cells.get(&(model.model.as_str(), row.name.as_str())).filter(|cell| cell.planned > 0)?;
        Some(square(cell, row))
    };
    let lines: Vec<GridLine<'_>> = models
        .into_iter()
        .map(|model| GridLine {
            name: model.model.as_str(),
            mean: model.mean.value,
            squares: rows.iter().map(|row| square_of(model, row)).collect(),
        })
        .collect();
    let heads: Vec<GridHead<'_>> =
        rows.iter().map(|row| GridHead { label: row.name.as_str(), title: "" }).collect();
    let is_of_tasks = rows.iter().all(|row| row.kind == RowKind::Task);
    html! {
        h2 { @if is_of_tasks { "Tasks" } @else { "Stages and results" } }
        (grid("Mean scores", &view.headline.words, &heads, &lines))
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
            (linked(&table, |row, column| (column == 0).then(|| path_of(&view.runs[row].name))))
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
    html! {
        @if !view.models.is_empty() { details #units { summary { "Models and their units" } (linked(&models, |_, _| None)) } }
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

//! The dialogues of a model on a task, and one of them.

use axum::response::Html;
use coordinator::dialogues::{DialogueLine, RecordView};
use domain::{DialogueKey, DialogueTime, ModelLabel, Outcome, RunId, TaskLabel};
use maud::{Markup, html};
use report::details::DialogueDetail;
use report::html::dialogue::dialogue;
use report::html::tables::linked;
use report::table::{Cell, Table, printable};
use report::words::duration;

use super::frame::frame;
use super::paths::{path_of, path_with};
use crate::visitor::Visitor;

/// The facts above the text of a dialogue.
pub(crate) struct DialogueFacts {
    case: String,
    outcome: String,
    worker: String,
    attempt: u32,
    started: String,
    took: String,
    redacted: bool,
}

impl DialogueFacts {
    pub(crate) fn of(view: &RecordView) -> Self {
        let record = &view.record;
        let outcome = match &record.outcome {
            Outcome::Scored { .. } => "scored".to_owned(),
            Outcome::Unscored { cause, .. } | Outcome::Failed { cause, .. } => format!("no score: {cause}"),
        };
        let answered = record.rounds.iter().map(|round| round.answered_at);
        let time = DialogueTime::of(record.started_at, answered, record.ended_at);
        Self {
            case: record.provenance.task.case.clone(),
            outcome,
            worker: record.attempt.worker.to_string(),
            attempt: record.attempt.number,
            started: record.started_at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
            took: duration(time.dialogue_s),
            redacted: view.redacted,
        }
    }
}

/// The dialogues of a model on a task.
pub(crate) fn list(
    visitor: &Visitor,
    run: &RunId,
    model: &ModelLabel,
    task: &TaskLabel,
    lines: &[DialogueLine],
) -> Html<String> {
    let mut table =
        Table::default().right(["dialogue"]).left(["case"]).right(["score"]).left([""]).titled("Dialogues");
    for line in lines {
        let (score, remark) = match line.outcome {
            None => (Cell::Empty, "no record yet"),
            Some(Ok(None)) => (Cell::Empty, "scored, but without this task's headline"),
            Some(Ok(score)) => (Cell::number(score, 3), ""),
            Some(Err(cause)) => (Cell::Empty, cause.as_str()),
        };
        table.row([
            Cell::Count(line.iteration.into()),
            Cell::from(line.case.as_str()),
            score,
            Cell::from(remark),
        ]);
    }
    let leads = |row: usize, column: usize| {
        let line = lines.get(row).filter(|line| column == 0 && line.outcome.is_some())?;
        Some(path_to(run, model, task, line.iteration))
    };
    let title = format!("{model} on {task}");
    let main = html! {
        (trail(run, None))
        h1 { (printable(&title)) }
        (linked(&table, leads))
    };
    frame(&title, Some(visitor), None, &main)
}

/// A dialogue.
pub(crate) fn page(
    visitor: &Visitor,
    key: &DialogueKey,
    way: &Markup,
    facts: &DialogueFacts,
    detail: &DialogueDetail,
) -> Html<String> {
    let main = html! {
        (way)
        h1 { (printable(&title(key))) }
        dl.facts {
            dt { "Case" } dd { (printable(&facts.case)) }
            dt { "Outcome" } dd { (printable(&facts.outcome)) }
            dt { "Worker" } dd { (printable(&facts.worker)) ", attempt " (facts.attempt) }
            dt { "Started" } dd { (facts.started) ", took " (facts.took) }
        }
        @if facts.redacted {
            p.warning { "The exercises of this run are protected: texts are replaced by their lengths. Operators read them." }
        }
        article { (dialogue(detail)) }
    };
    frame(&title(key), Some(visitor), None, &main)
}

/// A dialogue without a record.
pub(crate) fn missing(visitor: &Visitor, key: &DialogueKey, way: &Markup) -> Html<String> {
    let main = html! {
        (way)
        h1 { (printable(&title(key))) }
        p { "There is no record of this dialogue yet." }
    };
    frame(&title(key), Some(visitor), None, &main)
}

fn title(key: &DialogueKey) -> String {
    format!("{} on {}, dialogue {}", key.model, key.task, key.iteration)
}

fn path_to(run: &RunId, model: &ModelLabel, task: &TaskLabel, iteration: u32) -> String {
    let iteration = iteration.to_string();
    path_with(
        run,
        "dialogue",
        &[("model", model.as_str()), ("task", task.as_str()), ("iteration", &iteration)],
    )
}

/// Links back to the run and, for a dialogue, to its neighbours.
pub(crate) fn trail(run: &RunId, key: Option<(&DialogueKey, usize)>) -> Markup {
    html! {
        nav.trail aria-label="Way back" {
            a href=(path_of(run)) { "Run " (printable(run.as_str())) }
            @if let Some((key, count)) = key {
                " / " a href=(path_with(run, "dialogues", &[("model", key.model.as_str()), ("task", key.task.as_str())])) {
                    (printable(key.model.as_str())) " on " (printable(key.task.as_str()))
                }
                @if let Some(before) = key.iteration.checked_sub(1) {
                    " / " a href=(path_to(run, &key.model, &key.task, before)) { "previous" }
                }
                @if let Some(after) = key.iteration.checked_add(1).filter(|after| (*after as usize) < count) {
                    " / " a href=(path_to(run, &key.model, &key.task, after)) { "next" }
                }
            }
        }
    }
}

//! The dialogues of a model on a task, and one of them.

use axum::response::Html;
use coordinator::dialogues::{DialogueLine, RecordView};
use domain::{DialogueKey, DialogueTime, Outcome, Record, RunId};
use maud::{Markup, html};
use report::details::DialogueDetail;
use report::html::dialogue::dialogue;
use report::html::tables::{CellLook, ShownTable};
use report::table::{Cell, Table, printable};
use report::words::duration;

use super::frame::frame;
use crate::admission::Visitor;
use crate::render::frame::{path_of, path_with};

/// The dialogues of a model on a task.
pub(crate) fn list(visitor: &Visitor, run: &RunId, of: &DialogueKey, lines: &[DialogueLine]) -> Html<String> {
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
    let look = |row: usize, column: usize| {
        let line = lines.get(row).filter(|line| column == 0 && line.outcome.is_some());
        CellLook { link: line.map(|line| path_to(run, of, line.iteration)), ..CellLook::default() }
    };
    let title = format!("{} on {}", of.model, of.task);
    let main = html! {
        (trail(run, None))
        h1 { (printable(&title)) }
        (ShownTable { look: &look, ..ShownTable::of(&table) }.markup())
    };
    frame(&title, Some(visitor), None, &main)
}

/// A dialogue, one of so many; without a record there is nothing to read yet.
pub(crate) fn page(
    visitor: &Visitor,
    run: &RunId,
    key: &DialogueKey,
    count: usize,
    record: Option<RecordView>,
) -> Html<String> {
    let main = html! {
        (trail(run, Some((key, count))))
        h1 { (printable(&title(key))) }
        @match record {
            None => p { "There is no record of this dialogue yet." },
            Some(RecordView { record, redacted }) => {
                (facts(&record))
                @if redacted {
                    p.warning { "The exercises of this run are protected: texts are replaced by their lengths. Operators read them." }
                }
                article { (dialogue(&DialogueDetail::of_record(record))) }
            }
        }
    };
    frame(&title(key), Some(visitor), None, &main)
}

/// What stands above the text of a dialogue.
fn facts(record: &Record) -> Markup {
    let outcome = match &record.outcome {
        Outcome::Scored { .. } => "scored".to_owned(),
        Outcome::Unscored { cause, .. } | Outcome::Failed { cause, .. } => format!("no score: {cause}"),
    };
    let answered = record.rounds.iter().map(|round| round.answered_at);
    let time = DialogueTime::of(record.started_at, answered, record.ended_at);
    html! {
        dl.facts {
            dt { "Case" } dd { (printable(&record.provenance.task.case)) }
            dt { "Outcome" } dd { (printable(&outcome)) }
            dt { "Worker" } dd { (printable(record.attempt.worker.as_str())) ", attempt " (record.attempt.number) }
            dt { "Started" } dd { (record.started_at.strftime("%Y-%m-%d %H:%M:%S UTC")) ", took " (duration(time.dialogue_s)) }
        }
    }
}

fn title(key: &DialogueKey) -> String {
    format!("{} on {}, dialogue {}", key.model, key.task, key.iteration)
}

/// The address of a dialogue of the same model and task.
fn path_to(run: &RunId, of: &DialogueKey, iteration: u32) -> String {
    let (model, task, iteration) = (&of.model, &of.task, iteration.to_string());
    path_with(
        run,
        "dialogue",
        &[("model", model.as_str()), ("task", task.as_str()), ("iteration", &iteration)],
    )
}

/// Links back to the run and, for a dialogue, to its neighbours.
fn trail(run: &RunId, key: Option<(&DialogueKey, usize)>) -> Markup {
    html! {
        nav.trail aria-label="Way back" {
            a href=(path_of(run)) { "Run " (printable(run.as_str())) }
            @if let Some((key, count)) = key {
                " / " a href=(path_with(run, "dialogues", &[("model", key.model.as_str()), ("task", key.task.as_str())])) {
                    (printable(key.model.as_str())) " on " (printable(key.task.as_str()))
                }
                @if let Some(before) = key.iteration.checked_sub(1) {
                    " / " a href=(path_to(run, key, before)) { "previous" }
                }
                @if let Some(after) = key.iteration.checked_add(1).filter(|after| (*after as usize) < count) {
                    " / " a href=(path_to(run, key, after)) { "next" }
                }
            }
        }
    }
}

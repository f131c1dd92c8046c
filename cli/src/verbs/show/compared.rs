//! What the task expected and what was extracted from the answer. The case is found in the pack of the run, and the
//! answer is read again as evaluation does.

use std::fmt::{self, Write};
use std::thread;

use anyhow::{Context, anyhow, bail};
use domain::{Infos, Outcome, Record, Scores};
use present::redaction::is_redacted;
use results::{RunDir, RunManifest};
use tasks::{ComparedPart, Effort, EvaluationStage, Exercise, Limit, headline_answer, infos_of_answer};
use worker::evaluate::STACK_BYTES;
use worker::material::build_to_ask;

use super::difference::{LineDifference, LineSide};
use crate::kit::output::printable;
use crate::kit::screen::{Screen, Tint};
use crate::place::folders;

/// What was expected and extracted, of the answer that the headline is about.
pub(super) struct ComparedAnswer {
    /// Which answer it is, as in `answer 2 of 3`; empty where there is one.
    place: String,
    parts: Vec<ComparedPart>,
    /// An answer with full marks, if the case does not say of every part what it expects.
    reference: Option<String>,
}

impl ComparedAnswer {
    /// Opens the pack of a run and reads an answer again.
    ///
    /// # Errors
    /// The pack is not there or cannot be used; the texts of the record were replaced.
    pub(super) fn of(dir: &RunDir, manifest: &RunManifest, record: &Record) -> anyhow::Result<Self> {
        let (pack, plan) = folders::plan_kept(dir, manifest)?;
        let planned = plan.tasks.iter().find(|task| task.label == record.key.task);
        // A run may call a task otherwise than its pack.
        let in_pack = planned.and_then(|planned| pack.tasks().get(planned.index));
        let in_pack = in_pack.with_context(|| format!("the run has no task {}", record.key.task))?;
        let tasks = build_to_ask(&pack, [&in_pack.label])?;
        let task = tasks.first().context("the pack has no such task")?;
        let uid = &record.provenance.task.case;
        let case = task.cases().iter().find(|case| case.data.uid == *uid);
        let case = case.with_context(|| format!("the pack has no case {uid} of this task"))?;

        let nothing = (Scores::new(), Infos::new());
        let (scores, infos) = match &record.outcome {
            Outcome::Scored { scores, infos } => (scores, infos),
            Outcome::Unscored { infos, .. } => (&nothing.0, infos),
            Outcome::Failed { .. } => (&nothing.0, &nothing.1),
        };
        let answers = record.rounds.len();
        let number = headline_answer(task.class.headline, scores, answers).unwrap_or_default();
        let answer = record.rounds.get(number).map_or("", |round| round.answer.text.as_str());
        if is_redacted(answer) {
            bail!("the coordinator gives protected texts only to operators");
        }
        let infos = infos_of_answer(infos, number);
        // An answer that hit a limit would hit it again.
        let stage = Limit::in_infos(infos).map_or(EvaluationStage::Full, EvaluationStage::WithoutParsing);
        let effort = Effort { limits: pack.header().limits, stage };
        let parts = compared(&**case.exercise(), answer, infos, &effort)?;
        let says_all = !parts.is_empty() && parts.iter().all(|part| part.expected.is_some());
        Ok(Self {
            place: if answers > 1 { format!(" (answer {} of {answers})", number + 1) } else { String::new() },
            parts,
            reference: case.data.reference_answer.clone().filter(|_| !says_all),
        })
    }

    /// Writes each part with what differs.
    pub(super) fn write(&self, screen: Screen, out: &mut String) -> fmt::Result {
        for part in &self.parts {
            self.write_part(part, screen, out)?;
        }
        match &self.reference {
            Some(reference) => section("an answer with full marks", reference, screen, out),
            None if self.parts.is_empty() => {
                writeln!(out, "\nexpected: nothing that answers are compared with")
            }
            None => Ok(()),
        }
    }

    fn write_part(&self, part: &ComparedPart, screen: Screen, out: &mut String) -> fmt::Result {
        let ComparedPart { what, expected, extracted, by_line } = part;
        let place = &self.place;
        if let (Some(expected), Some(extracted)) = (expected, extracted)
            && expected.lines().eq(extracted.lines())
        {
            return section(&format!("expected and extracted {what}{place}"), extracted, screen, out);
        }
        if let Some(expected) = expected {
            section(&format!("expected {what}"), expected, screen, out)?;
        }
        let found = extracted.as_deref().unwrap_or("(nothing)");
        section(&format!("extracted {what}{place}"), found, screen, out)?;
        match (expected, extracted) {
            (Some(expected), Some(extracted)) if *by_line => {
                write_difference(expected, extracted, screen, out)
            }
            _ => Ok(()),
        }
    }
}

/// Reads an answer again, on a thread of its own.
fn compared(
    exercise: &dyn Exercise,
    answer: &str,
    infos: &Infos,
    effort: &Effort,
) -> anyhow::Result<Vec<ComparedPart>> {
    let read = || exercise.compared(answer, infos, effort);
    thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, read)?;
        reader.join().map_err(|_| anyhow!("the answer cannot be read"))
    })
}

/// Writes what differs; of two lines nothing, which stand below each other anyway.
fn write_difference(expected: &str, extracted: &str, screen: Screen, out: &mut String) -> fmt::Result {
    if expected.lines().count().max(extracted.lines().count()) <= 1 {
        return Ok(());
    }
    let Some(difference) = LineDifference::of(expected, extracted) else { return Ok(()) };
    writeln!(out, "\n{}", screen.heading("difference: - expected, + extracted"))?;
    for (side, line) in difference.lines {
        let line = printable(line);
        match side {
            LineSide::Both => writeln!(out, "  {line}")?,
            LineSide::Expected => writeln!(out, "{}", screen.tinted(&format!("- {line}"), Tint::Bad))?,
            LineSide::Extracted => writeln!(out, "{}", screen.tinted(&format!("+ {line}"), Tint::Good))?,
        }
    }
    if difference.left_out > 0 {
        writeln!(out, "  and {} lines more", difference.left_out)?;
    }
    Ok(())
}

fn section(title: &str, text: &str, screen: Screen, out: &mut String) -> fmt::Result {
    writeln!(out, "\n{}\n{}", screen.heading(&printable(title)), printable(text))
}

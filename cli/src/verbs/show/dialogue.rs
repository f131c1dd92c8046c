//! One dialogue, for people or as JSON.

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};

use anyhow::bail;
use domain::redaction::redact;
use domain::{DialogueKey, Oddities, Outcome, Record, TaskProvenance};
use report::export::score_at;
use results::{RunDir, RunManifest};
use tasks::{ComparedAnswer, Marks, TaskClass};

use super::{DialogueForm, compared};
use crate::files::compared::{ComparedTasks, on_large_stack};
use crate::kit::exit_code::usage;
use crate::kit::output::{explain, printable};
use crate::kit::screen::{Screen, Tint};
use crate::place::disclosure::{self, Disclosure, TextForm};
use crate::place::folders;
use crate::place::opened::OpenedBenchmark;

/// How far a score may lie from full marks by rounding.
const SAME_WITHIN: f64 = 1e-9;

/// Shows one dialogue of a benchmark.
pub(super) fn show(opened: &OpenedBenchmark, key: &DialogueKey, form: &DialogueForm) -> anyhow::Result<()> {
    let OpenedBenchmark { name, runs, .. } = opened;
    let mut found = Vec::new();
    for (dir, manifest) in runs {
        let index = folders::recorded(dir, manifest)?;
        let record = index.read(&dir.log(), disclosure::cipher(manifest)?.as_ref(), key)?;
        found.extend(record.map(|record| (dir, manifest, record)));
    }
    // Judges are asked about each model in a run of its own, whose dialogues are numbered alike.
    if let [_, _, ..] = found.as_slice() {
        let runs: Vec<&str> = found.iter().map(|(_, manifest, _)| manifest.run.as_str()).collect();
        bail!(usage!("several runs of {name} have a dialogue {key}; name one of {}", runs.join(", ")));
    }
    let Some((dir, manifest, mut record)) = found.pop() else {
        bail!(usage!("{name} has no record of dialogue {key}"));
    };
    let disclosure = Disclosure { plaintext: form.plaintext, password: None };
    let is_clear = disclosure.form(manifest) == TextForm::Clear;
    let compared = (is_clear && !form.json).then(|| compare(dir, manifest, &record));
    if !is_clear {
        redact(&mut record);
    }
    if form.json {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &record)?;
        writeln!(out)?;
        return Ok(());
    }
    let screen = Screen::here();
    let mut text = String::new();
    write_head(&record, screen, &mut text)?;
    match compared {
        None => text.push_str("\nexpected and extracted: protected; --plaintext shows them\n"),
        Some(Ok(compared)) => compared::write(&compared, screen, &mut text)?,
        Some(Err(error)) => {
            let reason = explain(&error).replace('\n', " ");
            text.push_str(&format!("\nexpected and extracted: not known: {reason}\n"));
        }
    }
    write_rounds(&record, screen, &mut text)?;
    write_outcome(&record.outcome, screen, &mut text)?;
    write_origin(&record, screen, &mut text)?;
    Ok(form.paging.show(&text, screen)?)
}

/// What was expected and extracted.
fn compare(dir: &RunDir, manifest: &RunManifest, record: &Record) -> anyhow::Result<ComparedAnswer> {
    let (pack, plan) = folders::plan_kept(dir, manifest)?;
    let tasks = ComparedTasks::build(&pack, &plan, Some(&record.key.task))?;
    on_large_stack(|| tasks.compare(record))?
}

/// Which dialogue it is, and its score.
fn write_head(record: &Record, screen: Screen, out: &mut String) -> fmt::Result {
    let asked = &record.provenance.task;
    writeln!(
        out,
        "{}: {} {} case {}, started {}",
        record.key, asked.class, asked.version, asked.case, record.started_at
    )?;
    let headline = report::input::headline(&asked.class, &asked.version);
    match &record.outcome {
        Outcome::Scored { scores, .. } => {
            let Some(score) = score_at(scores, headline) else { return Ok(()) };
            let line = format!("score: {score:.3} ({})", headline.join("."));
            writeln!(out, "{}", screen.tinted(&line, tint(asked, score)))
        }
        Outcome::Unscored { cause, .. } | Outcome::Failed { cause, .. } => {
            writeln!(out, "{}", screen.tinted(&format!("not scored: {cause}"), Tint::Bad))
        }
    }
}

/// The colour of a headline.
fn tint(asked: &TaskProvenance, score: f64) -> Tint {
    let class = TaskClass::resolve(&asked.class, &asked.version);
    let marks = class.map_or(Marks::UNIT, |class| class.marks);
    if (score - marks.full).abs() < SAME_WITHIN {
        Tint::Good
    } else if score <= marks.least {
        Tint::Bad
    } else {
        Tint::Middling
    }
}

/// What was said.
fn write_rounds(record: &Record, screen: Screen, out: &mut String) -> fmt::Result {
    if let Some(system) = &record.system {
        writeln!(out, "\n{}\n{}", screen.heading("system"), printable(system))?;
    }
    for (number, round) in (1..).zip(&record.rounds) {
        let prompt = screen.heading(&format!("prompt {number} ({})", round.prompt.kind));
        writeln!(out, "\n{prompt}\n{}", printable(&round.prompt.text))?;
        if let Some(reasoning) = &round.answer.reasoning {
            let heading = screen.heading(&format!("reasoning {number}"));
            writeln!(out, "\n{heading}\n{}", printable(reasoning))?;
        }
        let seconds = round.answered_at.duration_since(round.prompted_at).as_secs_f64();
        let odd: Oddities = round.answer.oddities.iter().copied().collect();
        let odd = if odd.is_empty() { String::new() } else { format!("; {}", odd.names()) };
        let answer = screen.heading(&format!("answer {number} ({seconds:.2} s{odd})"));
        writeln!(out, "\n{answer}\n{}", printable(&round.answer.text))?;
    }
    Ok(())
}

/// How it was judged.
fn write_outcome(outcome: &Outcome, screen: Screen, out: &mut String) -> anyhow::Result<()> {
    let mut section =
        |title: &str, text: &str| writeln!(out, "\n{}\n{}", screen.heading(title), printable(text));
    match outcome {
        Outcome::Scored { scores, infos } => {
            section("scores", &serde_json::to_string_pretty(scores)?)?;
            section("infos", &serde_json::to_string_pretty(infos)?)?;
        }
        Outcome::Unscored { cause, infos, message } => {
            section(&format!("not scored: {cause}"), message)?;
            section("infos", &serde_json::to_string_pretty(infos)?)?;
        }
        Outcome::Failed { cause, message } => section(&format!("not scored: {cause}"), message)?,
    }
    Ok(())
}

/// What it was made by.
fn write_origin(record: &Record, screen: Screen, out: &mut String) -> fmt::Result {
    writeln!(out, "\n{}", screen.heading("made at"))?;
    let Some(made_at) = &record.provenance.made_at else { return writeln!(out, "unknown") };
    for (what, value) in made_at.lines() {
        writeln!(out, "{what}: {}", printable(&value))?;
    }
    Ok(())
}

/// Parses MODEL/TASK/ITERATION. Model labels may contain slashes, task labels do not.
pub(super) fn key(text: &str) -> anyhow::Result<DialogueKey> {
    let parsed = text.rsplit_once('/').and_then(|(rest, iteration)| {
        let (model, task) = rest.rsplit_once('/')?;
        Some(DialogueKey { model: model.into(), task: task.into(), iteration: iteration.parse().ok()? })
    });
    parsed.ok_or_else(|| usage!("`{text}` is not a dialogue; expected MODEL/TASK/ITERATION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_labels_may_hold_slashes() {
        let key = key("org/model/RdfFriendCount-nt-1/7").unwrap();
        assert_eq!((key.model.as_str(), key.iteration), ("org/model", 7));
        assert!(super::key("RdfFriendCount").is_err());
        assert!(super::key("m/t/x").is_err());
    }
}

//! Whole records, one JSON object per line: `{"run": …, "ticket": …, "headline": {"score": …, "value": …}, "record": {…}}`.
//! `headline` is the score that stands for the dialogue; it is left out where there is none.

use std::io::Write;

use domain::{Outcome, Record, RunId};
use serde::Serialize;
use serde_json::Value;

use super::table::{Headline, score_at};
use super::{ExportError, ExportSummary};
use crate::log::{LogEntry, LogError};

/// How to write prompts, answers and everything that quotes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// Unchanged.
    Keep,
    /// Replaced by their length: for runs on protected packs.
    Redact,
}

#[derive(Serialize)]
struct Line<'a> {
    run: &'a RunId,
    ticket: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    headline: Option<HeadlineOf>,
    record: &'a Record,
}

#[derive(Serialize)]
struct HeadlineOf {
    score: String,
    value: f64,
}

/// Writes one line per dialogue. Wrap files in a `BufWriter`.
pub fn write(
    mut writer: impl Write,
    run: &RunId,
    texts: Texts,
    headline: Headline<'_>,
    entries: impl Iterator<Item = Result<LogEntry, LogError>>,
) -> Result<ExportSummary, ExportError> {
    let mut summary = ExportSummary::default();
    for entry in entries {
        let LogEntry { ticket, mut record } = entry?;
        if texts == Texts::Redact {
            redact(&mut record);
        }
        let path = headline(&record.provenance.task);
        let value = match &record.outcome {
            Outcome::Scored { scores, .. } => score_at(scores, path),
            Outcome::Unscored { .. } | Outcome::Failed { .. } => None,
        };
        let headline = value.map(|value| HeadlineOf { score: path.join("."), value });
        serde_json::to_writer(&mut writer, &Line { run, ticket, headline, record: &record })
            .map_err(std::io::Error::from)?;
        writer.write_all(b"\n")?;
        summary.dialogues += 1;
        summary.rows += 1;
    }
    writer.flush()?;
    Ok(summary)
}

/// Replaces every text that comes from an exercise or a model by its length in code points.
pub fn redact(record: &mut Record) {
    record.system.iter_mut().for_each(redact_text);
    for round in &mut record.rounds {
        redact_text(&mut round.prompt.text);
        redact_text(&mut round.answer.text);
        if let Some(reasoning) = &mut round.answer.reasoning {
            redact_text(reasoning);
        }
        round.failed_calls.iter_mut().for_each(|call| redact_text(&mut call.message));
    }
    record.failed_calls.iter_mut().for_each(|call| redact_text(&mut call.message));
    match &mut record.outcome {
        // Infos quote answers, queries and reference results.
        Outcome::Scored { infos, .. } => infos.values_mut().for_each(redact_value),
        Outcome::Unscored { infos, message, .. } => {
            infos.values_mut().for_each(redact_value);
            redact_text(message);
        }
        Outcome::Failed { message, .. } => redact_text(message),
    }
}

/// Replaces a text by its length in code points.
pub fn redact_text(text: &mut String) {
    *text = format!("[{} characters]", text.chars().count());
}

/// Whether a text is what [`redact_text`] leaves.
pub fn is_redacted(text: &str) -> bool {
    let number = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(" characters]"));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Replaces every text in a value by its length in code points.
pub fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => redact_text(text),
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(fields) => fields.values_mut().for_each(redact_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

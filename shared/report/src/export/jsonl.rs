//! Whole records, one JSON object per line: `{"run": …, "ticket": …, "headline": {"score": …, "value": …}, "record": {…}}`.
//! `headline` is the score that stands for the dialogue; it is left out where there is none.

use std::io::Write;

use domain::redaction::{Texts, redact};
use domain::{Outcome, Record, RunId};
use results::log::{LogEntry, LogError};
use serde::Serialize;

use super::ExportError;
use super::table::{Headline, score_at};

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

/// Writes one line per dialogue, and counts them. Wrap files in a `BufWriter`.
pub fn write(
    mut writer: impl Write,
    run: &RunId,
    texts: Texts,
    headline: Headline<'_>,
    entries: impl Iterator<Item = Result<LogEntry, LogError>>,
) -> Result<u64, ExportError> {
    let mut dialogues = 0;
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
        dialogues += 1;
    }
    writer.flush()?;
    Ok(dialogues)
}

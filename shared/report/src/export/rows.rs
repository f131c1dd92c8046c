//! Dialogues one by one: a [`table`](super::table) as comma-separated values, whole records as lines of JSON, and what many dialogues of a run share: versions, pack, scoring rules, model, sampling parameters. Repeated in every row
//! this would be most of a table, so rows have a number, and a list beside the table explains the numbers.
//!
//! A line is `{"run": …, "headline": {"score": …, "value": …}, "record": {…}}`. `headline` is the score that stands for
//! the dialogue; it is left out where there is none.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use domain::redaction::{Texts, redact};
use domain::{Outcome, Provenance, Record, RunId};
use results::log::LogError;
use results::{RunManifest, Summary};
use serde::Serialize;
use serde_json::{Value, json};

use crate::export::ExportError;
use crate::export::table::{Headline, Layout, score_at};
use crate::table::{CsvRows, RowCell, RowColumn};

/// Writes the table as comma-separated values and counts its dialogues. What has no value is an empty cell, numbers have full
/// precision, times are RFC 3339. Texts that a spreadsheet would take for formulas are made harmless.
///
/// # Errors
/// A record cannot be read, or the writer fails; what was written until then stays.
pub fn csv(
    out: impl Write,
    layout: &Layout<'_>,
    provenances: &mut Provenances,
    records: impl Iterator<Item = Result<Summary, LogError>>,
) -> Result<u64, ExportError> {
    let mut rows = CsvRows::new(out, layout.columns().iter().map(|column| column.name.as_str()))?;
    let dialogues = each_row(layout, provenances, records, |row| rows.row(row))?;
    rows.finish()?;
    Ok(dialogues)
}

/// Passes the rows of all dialogues to `each`.
fn each_row(
    layout: &Layout<'_>,
    provenances: &mut Provenances,
    records: impl Iterator<Item = Result<Summary, LogError>>,
    mut each: impl FnMut(&[RowCell<'_>]) -> io::Result<()>,
) -> Result<u64, ExportError> {
    let mut dialogues = 0;
    for record in records {
        let record = record?;
        layout.rows(&record, provenances.number(&record.provenance), &mut each)?;
        dialogues += 1;
    }
    Ok(dialogues)
}

#[derive(Serialize)]
struct Line<'a> {
    run: &'a RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    headline: Option<Value>,
    record: &'a Record,
}

/// Writes one line per dialogue, and counts them. Wrap files in a `BufWriter`.
pub fn jsonl(
    mut writer: impl Write,
    run: &RunId,
    texts: Texts,
    headline: Headline<'_>,
    records: impl Iterator<Item = Result<Record, LogError>>,
) -> Result<u64, ExportError> {
    let mut dialogues = 0;
    for record in records {
        let mut record = record?;
        if texts == Texts::Redact {
            redact(&mut record);
        }
        let path = headline(&record.provenance.task);
        let value = match &record.outcome {
            Outcome::Scored { scores, .. } => score_at(scores, path),
            Outcome::Unscored { .. } | Outcome::Failed { .. } => None,
        };
        let headline = value.map(|value| json!({ "score": path.join("."), "value": value }));
        serde_json::to_writer(&mut writer, &Line { run, headline, record: &record })
            .map_err(io::Error::from)?;
        writer.write_all(b"\n")?;
        dialogues += 1;
    }
    writer.flush()?;
    Ok(dialogues)
}

/// Provenances with their numbers, from 1 in the order of first appearance.
#[derive(Debug, Default)]
pub struct Provenances {
    list: Vec<Provenance>,
    numbers: HashMap<String, usize>,
    last: usize,
}

impl Provenances {
    /// The number of a provenance. Case and seed are ignored, because they differ between dialogues.
    pub fn number(&mut self, provenance: &Provenance) -> usize {
        // Dialogues come in the order of the plan, so most have the provenance of the one before.
        if self
            .last
            .checked_sub(1)
            .and_then(|at| self.list.get(at))
            .is_some_and(|last| same(last, provenance))
        {
            return self.last;
        }
        let mut shared = provenance.clone();
        shared.seed = 0;
        shared.task.case.clear();
        let name = json!(shared).to_string();
        self.last = *self.numbers.entry(name).or_insert_with(|| {
            self.list.push(shared);
            self.list.len()
        });
        self.last
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Provenance> {
        self.list.iter()
    }

    /// Writes the list as JSON, with the run and the meaning of the table's columns.
    pub fn write(&self, mut out: impl Write, run: &RunManifest, columns: &[RowColumn]) -> io::Result<()> {
        let of_dialogues = |provenance: &Provenance| {
            let mut value = json!(provenance);
            // Of one dialogue each, and columns of the tables.
            if let Some(fields) = value.as_object_mut() {
                fields.shift_remove("seed");
            }
            if let Some(task) = value.get_mut("task").and_then(Value::as_object_mut) {
                task.shift_remove("case");
            }
            value
        };
        let list = self
            .list
            .iter()
            .zip(1..)
            .map(|(provenance, number)| json!({ "provenance": number, "of": of_dialogues(provenance) }));
        let columns = columns.iter().map(|column| json!({ "name": column.name, "meaning": column.meaning }));
        let content = json!({
            "run": run.run,
            "created_at": run.created_at,
            "kgfleet": run.kgfleet,
            "configuration_hash": run.configuration_hash,
            "plan_hash": run.plan_hash,
            "seed": run.seed,
            "packs": run.packs,
            "planned_dialogues": run.planned_dialogues,
            "provenance": list.collect::<Vec<_>>(),
            "columns": columns.collect::<Vec<_>>(),
        });
        serde_json::to_writer_pretty(&mut out, &content)?;
        out.write_all(b"\n")?;
        out.flush()
    }
}

fn same(a: &Provenance, b: &Provenance) -> bool {
    a.kgfleet == b.kgfleet
        && a.model == b.model
        && a.sampling == b.sampling
        && a.about == b.about
        && a.task.class == b.task.class
        && a.task.version == b.task.version
        && a.task.pack == b.task.pack
        && a.task.pack_hash == b.task.pack_hash
        && a.task.scorer == b.task.scorer
}

/// The file beside a table that explains its numbers: `RUN.csv` has `RUN.provenance.json`.
pub fn path_beside(table: &Path) -> PathBuf {
    table.with_extension("provenance.json")
}

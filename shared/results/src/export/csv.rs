//! The [`table`](super::table) as comma-separated values (RFC 4180), UTF-8, with a heading line.

use std::fmt::Write as _;
use std::io::Write;

use csv::WriterBuilder;
use domain::RunId;

use super::table::{self, COLUMNS, Cell, PER_SCORE, TableRecord, WIDTH};
use super::{ExportError, ExportSummary, guard_formula};
use crate::log::LogError;

/// Writes the table. Empty cells are empty, numbers have full precision, times are RFC 3339.
pub fn write(
    writer: impl Write,
    run: &RunId,
    records: impl Iterator<Item = Result<TableRecord, LogError>>,
) -> Result<ExportSummary, ExportError> {
    let mut writer = WriterBuilder::new().from_writer(writer);
    writer.write_record(COLUMNS.map(|(name, ..)| name))?;
    let mut summary = ExportSummary::default();
    let mut cells: [String; WIDTH] = Default::default();
    for record in records {
        let record = record?;
        summary.dialogues += 1;
        // A dialogue has a dozen rows that differ in three cells: format the others once.
        let mut first = true;
        summary.rows += table::rows(run, &record, |row| {
            let changed = if first { 0..WIDTH } else { PER_SCORE };
            first = false;
            for (text, cell) in cells[changed.clone()].iter_mut().zip(&row[changed]) {
                set(text, cell);
            }
            writer.write_record(&cells)
        })?;
    }
    writer.flush()?;
    Ok(summary)
}

impl From<csv::Error> for ExportError {
    fn from(error: csv::Error) -> Self {
        match error.into_kind() {
            csv::ErrorKind::Io(error) => Self::Io(error),
            other => Self::Format { format: "CSV", message: format!("{other:?}") },
        }
    }
}

fn set(text: &mut String, cell: &Cell<'_>) {
    text.clear();
    // Writing to a String cannot fail.
    let _ = match cell {
        Cell::Empty => Ok(()),
        Cell::Text(words) => text.write_str(&guard_formula(words)),
        Cell::Integer(number) => write!(text, "{number}"),
        Cell::Number(number) => write!(text, "{number}"),
        Cell::Time(time) => write!(text, "{time}"),
    };
}

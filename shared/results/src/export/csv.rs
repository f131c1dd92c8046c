//! The [`table`](super::table) as comma-separated values (RFC 4180), UTF-8, with a heading line.

use std::borrow::Cow;
use std::io::Write;

use domain::RunId;

use super::table::{self, COLUMNS, Cell};
use super::{ExportError, ExportSummary, guard_formula};
use crate::log::{LogEntry, LogError};

/// Writes the table. Empty cells are empty, numbers have full precision, times are RFC 3339.
pub fn write(
    writer: impl Write,
    run: &RunId,
    entries: impl Iterator<Item = Result<LogEntry, LogError>>,
) -> Result<ExportSummary, ExportError> {
    let mut csv = csv::Writer::from_writer(writer);
    let failed = |error: csv::Error| ExportError::Format { format: "CSV", message: error.to_string() };
    csv.write_record(COLUMNS.map(|(name, ..)| name)).map_err(failed)?;
    let mut summary = ExportSummary::default();
    for entry in entries {
        let entry = entry?;
        summary.dialogues += 1;
        summary.rows += table::rows(run, &entry, |row| {
            for cell in row {
                let text = match cell {
                    Cell::Empty => Cow::Borrowed(""),
                    Cell::Text(text) => guard_formula(text),
                    Cell::Integer(number) => Cow::Owned(number.to_string()),
                    Cell::Number(number) => Cow::Owned(number.to_string()),
                    Cell::Time(time) => Cow::Owned(time.to_string()),
                };
                csv.write_field(text.as_bytes()).map_err(failed)?;
            }
            csv.write_record(None::<&[u8]>).map_err(failed)
        })?;
    }
    csv.flush()?;
    Ok(summary)
}

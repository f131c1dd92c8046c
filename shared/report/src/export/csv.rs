//! A [`table`](super::table) as comma-separated values.

use std::io::Write;

use crate::table::CsvRows;

use super::provenance::Provenances;
use super::table::{Layout, TableRecord};
use super::{ExportError, ExportSummary};
use results::log::LogError;

/// Writes the table, one record at a time. What has no value is an empty cell, numbers have full precision, times are RFC 3339.
/// Texts that a spreadsheet would take for formulas are made harmless.
///
/// # Errors
/// A record cannot be read, or the writer fails; what was written until then stays.
pub fn write(
    writer: impl Write,
    layout: &Layout<'_>,
    provenances: &mut Provenances,
    records: impl Iterator<Item = Result<TableRecord, LogError>>,
) -> Result<ExportSummary, ExportError> {
    let mut rows = CsvRows::new(writer, layout.columns().iter().map(|column| column.name.as_str()))?;
    let summary = layout.all_rows(provenances, records, |row| rows.row(row))?;
    rows.finish()?;
    Ok(summary)
}

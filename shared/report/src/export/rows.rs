//! A [`table`](super::table) row by row, as comma-separated values and as Apache Parquet.

use std::io::{self, Write};

use results::Summary;
use results::log::LogError;

use super::ExportError;
use super::provenance::Provenances;
use super::table::Layout;
use crate::table::parquet::ParquetRows;
use crate::table::{CsvRows, RowCell};

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

/// Writes the table as Parquet and counts its dialogues; every column may be null. Times are microseconds, UTC.
///
/// # Errors
/// A record cannot be read, or the writer fails.
pub fn parquet(
    out: impl Write + Send,
    layout: &Layout<'_>,
    provenances: &mut Provenances,
    records: impl Iterator<Item = Result<Summary, LogError>>,
) -> Result<u64, ExportError> {
    let made_by = concat!("kgfleet ", env!("CARGO_PKG_VERSION"));
    let mut rows = ParquetRows::new(out, layout.columns(), "scores", made_by)?;
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

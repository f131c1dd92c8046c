//! A [`table`](super::table) as Apache Parquet, compressed with zstd. Repeated texts are stored once in dictionaries,
//! so a million rows take a few megabytes.

use std::io::Write;

use crate::table::parquet::ParquetRows;

use super::provenance::Provenances;
use super::table::{Layout, TableRecord};
use super::{ExportError, ExportSummary};
use results::log::LogError;

/// Writes the table; every column may be null. Times are microseconds, UTC.
pub fn write(
    writer: impl Write + Send,
    layout: &Layout<'_>,
    provenances: &mut Provenances,
    records: impl Iterator<Item = Result<TableRecord, LogError>>,
) -> Result<ExportSummary, ExportError> {
    let made_by = concat!("kgfleet ", env!("CARGO_PKG_VERSION"));
    let mut rows = ParquetRows::new(writer, layout.columns(), "scores", made_by)?;
    let summary = layout.all_rows(provenances, records, |row| rows.row(row))?;
    rows.finish()?;
    Ok(summary)
}

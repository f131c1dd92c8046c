//! A [`table`](super::table) as comma-separated values (RFC 4180), UTF-8, with a heading line.

use std::fmt::Write as _;
use std::io::Write;

use csv::WriterBuilder;
use present::table::guard_formula;

use super::provenance::Provenances;
use super::table::{ExportCell, Layout, TableRecord};
use super::{ExportError, ExportSummary};
use crate::log::LogError;

/// Writes the table. Empty cells are empty, numbers have full precision, times are RFC 3339.
pub fn write(
    writer: impl Write,
    layout: &Layout<'_>,
    provenances: &mut Provenances,
    records: impl Iterator<Item = Result<TableRecord, LogError>>,
) -> Result<ExportSummary, ExportError> {
    let mut writer = WriterBuilder::new().from_writer(writer);
    writer.write_record(layout.columns().iter().map(|(name, ..)| guard_formula(name).into_owned()))?;
    let mut summary = ExportSummary::default();
    let mut text = String::new();
    for record in records {
        let record = record?;
        summary.dialogues += 1;
        let provenance = provenances.number(&record.provenance);
        summary.rows += layout.rows(&record, provenance, |row| {
            for cell in row {
                match cell {
                    ExportCell::Text(words) => writer.write_field(guard_formula(words).as_bytes())?,
                    other => {
                        set(&mut text, other);
                        writer.write_field(&text)?;
                    }
                }
            }
            writer.write_record(None::<&[u8]>)
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

fn set(text: &mut String, cell: &ExportCell<'_>) {
    text.clear();
    // Writing to a String cannot fail.
    let _ = match cell {
        ExportCell::Empty => Ok(()),
        ExportCell::Text(words) => text.write_str(words),
        ExportCell::Integer(number) => write!(text, "{number}"),
        ExportCell::Number(number) => write!(text, "{number}"),
        ExportCell::Flag(flag) => write!(text, "{flag}"),
        ExportCell::Time(time) => write!(text, "{time}"),
    };
}

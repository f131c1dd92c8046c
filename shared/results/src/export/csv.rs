//! The [`table`](super::table) as comma-separated values (RFC 4180), UTF-8, with a heading line.

use std::io::Write;

use domain::RunId;

use super::table::{self, COLUMNS, Cell, PER_SCORE, TableRecord};
use super::{ExportError, ExportSummary, guard_formula};
use crate::log::LogError;

/// Writes the table. Empty cells are empty, numbers have full precision, times are RFC 3339.
pub fn write(
    mut writer: impl Write,
    run: &RunId,
    records: impl Iterator<Item = Result<TableRecord, LogError>>,
) -> Result<ExportSummary, ExportError> {
    let heading = COLUMNS.map(|(name, ..)| name).join(",");
    writeln!(writer, "{heading}")?;
    let mut summary = ExportSummary::default();
    // A dialogue has a dozen rows that differ in three cells: the others are written once and copied.
    let (mut before, mut after, mut line) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        let record = record?;
        before.clear();
        after.clear();
        summary.dialogues += 1;
        summary.rows += table::rows(run, &record, |row| -> std::io::Result<()> {
            if before.is_empty() {
                push_cells(&mut before, &row[..PER_SCORE.start])?;
                push_cells(&mut after, &row[PER_SCORE.end..])?;
            }
            line.clear();
            line.extend_from_slice(&before);
            push_cells(&mut line, &row[PER_SCORE])?;
            line.extend_from_slice(&after);
            // The comma behind the last cell.
            line.pop();
            line.push(b'\n');
            writer.write_all(&line)
        })?;
    }
    writer.flush()?;
    Ok(summary)
}

/// Appends cells, each with a comma behind it.
fn push_cells(line: &mut Vec<u8>, cells: &[Cell<'_>]) -> std::io::Result<()> {
    for cell in cells {
        match cell {
            Cell::Empty => {}
            Cell::Text(text) => push_text(line, &guard_formula(text)),
            Cell::Integer(number) => write!(line, "{number}")?,
            Cell::Number(number) => write!(line, "{number}")?,
            Cell::Time(time) => write!(line, "{time}")?,
        }
        line.push(b',');
    }
    Ok(())
}

/// Appends a text, in quotes where it needs them.
fn push_text(line: &mut Vec<u8>, text: &str) {
    if !text.contains([',', '"', '\r', '\n']) {
        line.extend_from_slice(text.as_bytes());
        return;
    }
    line.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            line.push(b'"');
        }
        line.push(byte);
    }
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_read_back(texts in prop::collection::vec("[a-c,\"\r\n ]{0,6}", 2..5)) {
            let mut line = Vec::new();
            let cells: Vec<Cell<'_>> = texts.iter().map(|text| Cell::Text(text)).collect();
            push_cells(&mut line, &cells).unwrap();
            line.pop();
            let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_slice());
            let row = reader.records().next().unwrap().unwrap();
            prop_assert_eq!(row.iter().collect::<Vec<_>>(), texts.iter().map(|text| guard_formula(text)).collect::<Vec<_>>());
        }
    }
}

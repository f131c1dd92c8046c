//! The [`table`](super::table) as an Excel workbook. Rows are written to temporary files, so that
//! memory does not grow with their number.

use std::io::{Seek, Write};

use domain::RunId;
use rust_xlsxwriter::{Workbook, Worksheet, XlsxError};

use super::table::{self, COLUMNS, Cell, Row, TableRecord};
use super::{ExportError, ExportSummary, guard_formula};
use crate::log::LogError;

/// Excel's maximum number of rows per sheet, including the heading. More rows go to further sheets.
pub const SHEET_ROWS: u32 = 1_048_576;

/// Excel's maximum number of characters in a cell. Longer texts are cut.
const CELL_CHARACTERS: usize = 32_767;

/// Writes the workbook: sheets `scores`, `scores 2`, …
pub fn write(
    writer: impl Write + Seek + Send,
    run: &RunId,
    records: impl Iterator<Item = Result<TableRecord, LogError>>,
) -> Result<ExportSummary, ExportError> {
    let failed = |error: XlsxError| ExportError::Format { format: "XLSX", message: error.to_string() };
    let mut workbook = Workbook::new();
    let mut sheets = 0_u32;
    // Start as if a sheet were full, so that the first row opens one.
    let mut next_row = SHEET_ROWS;
    let mut summary = ExportSummary::default();
    for record in records {
        let record = record?;
        summary.dialogues += 1;
        summary.rows += table::rows(run, &record, |row| {
            if next_row == SHEET_ROWS {
                sheets += 1;
                start_sheet(&mut workbook, sheets)?;
                next_row = 1;
            }
            let sheet = workbook.worksheet_from_index(sheets as usize - 1)?;
            write_row(sheet, next_row, row)?;
            next_row += 1;
            Ok(())
        })
        .map_err(failed)?;
    }
    if sheets == 0 {
        start_sheet(&mut workbook, 1).map_err(failed)?;
    }
    workbook.save_to_writer(writer).map_err(failed)?;
    Ok(summary)
}

fn start_sheet(workbook: &mut Workbook, number: u32) -> Result<(), XlsxError> {
    let sheet = workbook.add_worksheet_with_constant_memory()?;
    sheet.set_name(if number == 1 { "scores".to_owned() } else { format!("scores {number}") })?;
    sheet.set_freeze_panes(1, 0)?;
    for (column, (name, ..)) in (0..).zip(COLUMNS) {
        sheet.write_string(0, column, name)?;
    }
    Ok(())
}

fn write_row(sheet: &mut Worksheet, row: u32, cells: &Row<'_>) -> Result<(), XlsxError> {
    for (column, cell) in (0..).zip(cells) {
        match cell {
            Cell::Empty => {}
            Cell::Text(text) => {
                let text = guard_formula(text);
                let end = text.char_indices().nth(CELL_CHARACTERS).map_or(text.len(), |(at, _)| at);
                sheet.write_string(row, column, &text[..end])?;
            }
            // Excel's numbers are doubles; seeds have 53 bits and fit.
            Cell::Integer(number) => {
                sheet.write_number(row, column, *number as f64)?;
            }
            Cell::Number(number) => {
                sheet.write_number(row, column, *number)?;
            }
            Cell::Time(time) => {
                sheet.write_string(row, column, time.to_string())?;
            }
        }
    }
    Ok(())
}

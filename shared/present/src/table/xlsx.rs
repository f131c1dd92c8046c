//! Tables as the sheets of an Excel workbook.

use std::borrow::Cow;
use std::io::{Seek, Write};

use jiff::Timestamp;
use rust_xlsxwriter::{ExcelDateTime, Format, FormatUnderline, Workbook, Worksheet, XlsxError};

use super::{Align, Cell, Table, TopPlace, guard_formula};

/// Excel's maximum number of characters in a cell. Longer texts are cut.
const CELL_CHARACTERS: usize = 32_767;

/// Maximum number of characters in the name of a sheet, in Excel.
const SHEET_NAME_CHARACTERS: usize = 31;

/// Maximum number of digits shown after the point; the cell contains all digits.
const PLACES_MAX: usize = 6;

/// Writes tables, one sheet each, named by their titles. Rows go to temporary files, so that memory does not grow with
/// tables.
pub fn write_workbook(tables: &[Table], writer: impl Write + Seek + Send) -> Result<(), XlsxError> {
    let mut workbook = Workbook::new();
    for (number, table) in tables.iter().enumerate() {
        let sheet = workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name(sheet_name(&table.title, number))?;
        write_sheet(sheet, table)?;
    }
    if tables.is_empty() {
        workbook.add_worksheet();
    }
    workbook.save_to_writer(writer)
}

fn write_sheet(sheet: &mut Worksheet, table: &Table) -> Result<(), XlsxError> {
    let bold = Format::new().set_bold();
    let date = Format::new().set_num_format("yyyy-mm-dd hh:mm:ss");
    // By digits after the point.
    let digits: Vec<Format> = (0..=PLACES_MAX)
        .map(|places| match places {
            0 => Format::new().set_num_format("0"),
            _ => Format::new().set_num_format(format!("0.{}", "0".repeat(places))),
        })
        .collect();
    sheet.set_freeze_panes(1, 1)?;
    for (column, heading) in (0..).zip(table.headings()) {
        sheet.write_string_with_format(0, column, &heading.name, &bold)?;
        let width = if heading.align == Align::Left { 32.0 } else { 12.0 };
        sheet.set_column_width(column, width)?;
    }
    let mut next = 1;
    for row in table.rows() {
        for (column, cell) in (0..).zip(row) {
            match cell {
                Cell::Empty => {}
                Cell::Time(time) => {
                    sheet.write_datetime_with_format(next, column, excel_time(*time)?, &date)?;
                }
                Cell::Count(_) | Cell::Number(..) | Cell::Placed(..) | Cell::Told(_, Some(_)) => {
                    if let Some(value) = cell.value() {
                        let places = match cell {
                            Cell::Count(_) => 0,
                            Cell::Number(_, places) | Cell::Placed(_, places, _) => *places,
                            _ => 3,
                        };
                        let format = &digits[places.min(PLACES_MAX)];
                        let placed = cell.place().map(|place| match place {
                            TopPlace::First => format.clone().set_bold(),
                            TopPlace::Second => format.clone().set_underline(FormatUnderline::Single),
                        });
                        sheet.write_number_with_format(
                            next,
                            column,
                            value,
                            placed.as_ref().unwrap_or(format),
                        )?;
                    }
                }
                Cell::Text(text) | Cell::Told(text, None) => {
                    sheet.write_string(next, column, cell_text(text))?;
                }
            }
        }
        next += 1;
    }
    for note in &table.notes {
        next += 1;
        sheet.write_string(next, 0, cell_text(note))?;
    }
    Ok(())
}

/// A name that Excel accepts and that no other sheet has.
fn sheet_name(title: &str, number: usize) -> String {
    let clean: String = title.chars().filter(|c| !"[]:*?/\\'".contains(*c) && !c.is_control()).collect();
    let cut = |text: &str, most: usize| text.chars().take(most).collect::<String>().trim().to_owned();
    match cut(&clean, SHEET_NAME_CHARACTERS - 4).as_str() {
        "" => format!("table {}", number + 1),
        name => format!("{} {name}", number + 1),
    }
}

/// A text as Excel takes it: no formula, and not too long.
pub fn cell_text(text: &str) -> Cow<'_, str> {
    let guarded = guard_formula(text);
    match guarded.char_indices().nth(CELL_CHARACTERS) {
        Some((end, _)) => Cow::Owned(guarded[..end].to_owned()),
        None => guarded,
    }
}

/// A time as Excel knows it: without a zone, so in UTC, to the millisecond.
///
/// # Errors
/// Excel has no times before 1900 and after 9999.
pub fn excel_time(time: Timestamp) -> Result<ExcelDateTime, XlsxError> {
    ExcelDateTime::parse_from_str(&time.strftime("%Y-%m-%dT%H:%M:%S%.3f").to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::table::tests::example;

    #[test]
    fn a_workbook_has_a_sheet_per_table() {
        let mut dated =
            Table::default().left(["when"]).titled("a title: with [much] more in it than Excel takes");
        dated.row([Cell::Time("2026-11-22T10:00:00Z".parse().unwrap())]);
        let mut out = Cursor::new(Vec::new());
        write_workbook(&[example(), dated.clone(), dated], &mut out).unwrap();
        assert!(out.into_inner().starts_with(b"PK"));
        write_workbook(&[], Cursor::new(Vec::new())).unwrap();
        assert_eq!(sheet_name("[]", 4), "table 5");
    }
}

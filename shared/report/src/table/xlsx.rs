//! Tables as the sheets of an Excel workbook.

use std::borrow::Cow;
use std::io::{Seek, Write};

use jiff::Timestamp;
use rust_xlsxwriter::{
    ColNum, ExcelDateTime, Format, FormatUnderline, RowNum, Workbook, Worksheet, XlsxError,
};

use super::{ALL_DIGITS, Align, RowCell, RowColumn, Table, TopPlace, guard_formula};

/// Excel's maximum number of characters in a cell. Longer texts are cut.
const CELL_CHARACTERS: usize = 32_767;

/// Excel's maximum number of rows per sheet, including the heading. More rows go to further sheets.
const SHEET_ROWS_MAX: RowNum = 1_048_576;

/// Excel's format of dates.
const DATE: &str = "yyyy-mm-dd hh:mm:ss";

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
    let formats = CellFormats::default();
    sheet.set_freeze_panes(1, 1)?;
    write_headings(sheet, table.headings().iter().map(|heading| heading.name.as_str()))?;
    for (column, heading) in (0..).zip(table.headings()) {
        let width = if heading.align == Align::Left { 32.0 } else { 12.0 };
        sheet.set_column_width(column, width)?;
    }
    let mut next = 1;
    for row in table.rows() {
        formats.write_row(sheet, next, row)?;
        next += 1;
    }
    for note in &table.notes {
        next += 1;
        sheet.write_string(next, 0, cell_text(note))?;
    }
    Ok(())
}

/// Writes the first row.
///
/// # Errors
/// The sheet takes no more.
pub fn write_headings<'n>(
    sheet: &mut Worksheet,
    names: impl Iterator<Item = &'n str>,
) -> Result<(), XlsxError> {
    let bold = Format::new().set_bold();
    for (column, name) in (0..).zip(names) {
        sheet.write_string_with_format(0, column, cell_text(name), &bold)?;
    }
    Ok(())
}

/// How cells look.
struct CellFormats {
    date: Format,
    /// How many digits of counts are shown after the point: none, or [`ALL_DIGITS`] for no format.
    count_places: usize,
    /// Of numbers, by digits after the point.
    digits: Vec<Format>,
}

impl Default for CellFormats {
    fn default() -> Self {
        let digits = |places| match places {
            0 => Format::new().set_num_format("0"),
            _ => Format::new().set_num_format(format!("0.{}", "0".repeat(places))),
        };
        Self {
            date: Format::new().set_num_format(DATE),
            count_places: 0,
            digits: (0..=PLACES_MAX).map(digits).collect(),
        }
    }
}

impl CellFormats {
    fn write_row(&self, sheet: &mut Worksheet, row: RowNum, cells: &[RowCell<'_>]) -> Result<(), XlsxError> {
        for (column, cell) in (0..).zip(cells) {
            let places = match cell {
                RowCell::Count(_) => self.count_places,
                RowCell::Number(_, places) | RowCell::Placed(_, places, _) => *places,
                _ => 3,
            };
            match cell {
                RowCell::Empty => {}
                RowCell::Text(text) => {
                    sheet.write_string(row, column, cell_text(text))?;
                }
                RowCell::Told(text, None) => {
                    sheet.write_string(row, column, cell_text(text))?;
                }
                RowCell::Flag(flag) => {
                    sheet.write_boolean(row, column, *flag)?;
                }
                RowCell::Time(time) => {
                    sheet.write_datetime_with_format(row, column, excel_time(*time)?, &self.date)?;
                }
                RowCell::Count(_) | RowCell::Number(..) | RowCell::Placed(..) | RowCell::Told(_, Some(_)) => {
                    if let Some(value) = cell.value() {
                        self.write_number(sheet, (row, column), value, (places, cell.place()))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// With all digits, or as many as people see.
    fn write_number(
        &self,
        sheet: &mut Worksheet,
        (row, column): (RowNum, ColNum),
        value: f64,
        (places, place): (usize, Option<TopPlace>),
    ) -> Result<(), XlsxError> {
        if places == ALL_DIGITS {
            return sheet.write_number(row, column, value).map(|_| ());
        }
        let format = &self.digits[places.min(PLACES_MAX)];
        let placed = place.map(|place| match place {
            TopPlace::First => format.clone().set_bold(),
            TopPlace::Second => format.clone().set_underline(FormatUnderline::Single),
        });
        sheet.write_number_with_format(row, column, value, placed.as_ref().unwrap_or(format)).map(|_| ())
    }
}

/// The sheets of a table that is written row by row: when one is full, the next is begun. Rows go to temporary files.
pub struct SheetRows {
    name: &'static str,
    headings: Vec<String>,
    formats: CellFormats,
    count: u32,
    /// Place of the last sheet in the workbook.
    at: usize,
    next_row: RowNum,
}

impl SheetRows {
    /// Begins the first sheet of this name.
    ///
    /// # Errors
    /// The workbook takes no more.
    pub fn new(
        workbook: &mut Workbook,
        name: &'static str,
        columns: &[RowColumn],
    ) -> Result<Self, XlsxError> {
        let headings = columns.iter().map(|column| column.name.clone()).collect();
        let formats = CellFormats { count_places: ALL_DIGITS, ..CellFormats::default() };
        let mut rows = Self { name, headings, formats, count: 0, at: 0, next_row: 0 };
        rows.begin(workbook)?;
        Ok(rows)
    }

    fn begin(&mut self, workbook: &mut Workbook) -> Result<(), XlsxError> {
        self.count += 1;
        self.at = workbook.worksheets().len();
        let sheet = workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name(match self.count {
            1 => self.name.to_owned(),
            count => format!("{} {count}", self.name),
        })?;
        sheet.set_freeze_panes(1, 0)?;
        write_headings(sheet, self.headings.iter().map(String::as_str))?;
        self.next_row = 1;
        Ok(())
    }

    /// Writes a row with a cell for each column.
    ///
    /// # Errors
    /// The workbook takes no more.
    pub fn row(&mut self, workbook: &mut Workbook, cells: &[RowCell<'_>]) -> Result<(), XlsxError> {
        if self.next_row == SHEET_ROWS_MAX {
            self.begin(workbook)?;
        }
        let sheet = workbook.worksheet_from_index(self.at)?;
        self.formats.write_row(sheet, self.next_row, cells)?;
        self.next_row += 1;
        Ok(())
    }
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
    use crate::table::Cell;
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

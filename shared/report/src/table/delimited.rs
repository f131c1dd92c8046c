//! Tables as comma-separated values (RFC 4180), UTF-8, with a heading line. Numbers have all their digits, unknown
//! values are empty, times are RFC 3339. Titles, notes and totals are left out. How a kind of [`RowCell`] is written is decided
//! in one `match`; a new kind is added there.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::{Cell, RowCell, Table};

/// Writes rows one by one. Texts that look like formulas are made harmless.
pub struct CsvRows<W: Write> {
    writer: csv::Writer<W>,
    text: String,
}

impl<W: Write> CsvRows<W> {
    /// Begins with the headings.
    pub fn new<'n>(out: W, headings: impl IntoIterator<Item = &'n str>) -> io::Result<Self> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(headings.into_iter().map(|name| guard_formula(name).into_owned()))?;
        Ok(Self { writer, text: String::new() })
    }

    /// Writes a row with a cell for each heading.
    pub fn row(&mut self, cells: &[RowCell<'_>]) -> io::Result<()> {
        for cell in cells {
            self.text.clear();
            // Writing to a String cannot fail.
            let _ = match cell {
                RowCell::Empty => Ok(()),
                // A dash means that there is nothing, and spreadsheets take it for that.
                RowCell::Text(text) if text == "-" => self.text.write_str(text),
                RowCell::Text(text) => self.text.write_str(&guard_formula(text)),
                RowCell::Count(count) => write!(self.text, "{count}"),
                RowCell::Number(..) | RowCell::Placed(..) | RowCell::Told(..) => {
                    cell.value().map_or(Ok(()), |value| write!(self.text, "{value}"))
                }
                RowCell::Flag(flag) => write!(self.text, "{flag}"),
                RowCell::Time(time) => write!(self.text, "{time}"),
            };
            self.writer.write_field(&self.text)?;
        }
        Ok(self.writer.write_record(None::<&[u8]>)?)
    }

    /// Writes what is held back.
    pub fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Table {
    /// Writes the table as CSV.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut rows = CsvRows::new(out, self.headings.iter().map(|heading| heading.name.as_str()))?;
        self.body().iter().try_for_each(|row| rows.row(row))?;
        rows.finish()
    }

    /// The rows without the total.
    pub(super) fn body(&self) -> &[Vec<Cell>] {
        &self.rows[..self.rows.len() - usize::from(self.total && !self.rows.is_empty())]
    }
}

/// Makes a text safe for spreadsheets: a text that looks like a formula gets a leading apostrophe (OWASP, "CSV
/// Injection"). Model names come from configurations and servers and cannot be trusted.
pub fn guard_formula(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use crate::table::tests::example;

    #[test]
    fn numbers_have_all_digits_and_texts_are_no_formulas() {
        let mut out = Vec::new();
        example().write_csv(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "task,n,mean\na|b,20,0.123456\n'=1+1,,0.5\n");
    }
}

//! Tables as comma-separated values (RFC 4180), UTF-8, with a heading line. Numbers have all their digits, unknown
//! values are empty. Titles, notes and totals are left out. How a kind of [`Cell`] is written is decided in one
//! `match`; a new kind is added there.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{Cell, Table};

impl Table {
    /// Writes the table as CSV. Texts that look like formulas are made harmless.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(self.headings.iter().map(|heading| &heading.name))?;
        for row in self.body() {
            let cells = row.iter().map(|cell| match cell {
                Cell::Empty => String::new(),
                // A dash means that there is nothing, and spreadsheets take it for that.
                Cell::Text(text) if text == "-" => text.clone(),
                Cell::Text(text) => guard_formula(text).into_owned(),
                Cell::Count(_) | Cell::Number(..) | Cell::Placed(..) | Cell::Told(..) => {
                    cell.value().map(|value| value.to_string()).unwrap_or_default()
                }
                Cell::Time(time) => time.to_string(),
            });
            writer.write_record(cells)?;
        }
        writer.flush()
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

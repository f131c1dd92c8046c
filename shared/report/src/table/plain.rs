//! Tables as comma-separated values (RFC 4180), as JSON and as Markdown.
//!
//! CSV is UTF-8 with a heading line. Numbers have all their digits, unknown
//! values are empty, times are RFC 3339. Titles, notes and totals are left out. How a kind of [`RowCell`] is written is decided
//! in one `match`; a new kind is added there.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::table::{Align, Cell, RowCell, Table, TopPlace, printable};

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

impl Table {
    /// The table as JSON: numbers with all digits, `null` for unknown values, no total.
    pub fn to_json(&self) -> Value {
        let row = |cells: &Vec<Cell>| -> Map<String, Value> {
            let cells = self.headings.iter().zip(cells);
            cells
                .map(|(heading, cell)| {
                    let value = match cell {
                        Cell::Empty => Value::Null,
                        Cell::Text(text) => json!(text),
                        Cell::Flag(flag) => json!(flag),
                        Cell::Count(count) => json!(count),
                        Cell::Number(..) | Cell::Placed(..) | Cell::Told(..) => json!(cell.value()),
                        Cell::Time(time) => json!(time.to_string()),
                    };
                    (heading.name.clone(), value)
                })
                .collect()
        };
        json!({ "title": self.title, "notes": self.notes, "rows": self.body().iter().map(row).collect::<Vec<_>>() })
    }
}

impl Table {
    /// Writes the table as Markdown.
    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.title.is_empty() {
            writeln!(out, "### {}\n", cell(&self.title))?;
        }
        let line = |cells: &[String], out: &mut dyn Write| writeln!(out, "| {} |", cells.join(" | "));
        line(&self.headings.iter().map(|heading| cell(&heading.name)).collect::<Vec<_>>(), out)?;
        let rule = |align| match align {
            Align::Left => "---".to_owned(),
            Align::Right => "---:".to_owned(),
        };
        line(&self.headings.iter().map(|heading| rule(heading.align)).collect::<Vec<_>>(), out)?;
        for (index, row) in self.rows.iter().enumerate() {
            let last = self.total && index + 1 == self.rows.len();
            let shown = row.iter().map(|found| placed(cell(&found.shown()), found.place()));
            let cells: Vec<String> = if last {
                shown.map(|text| if text.is_empty() { text } else { format!("**{text}**") }).collect()
            } else {
                shown.collect()
            };
            line(&cells, out)?;
        }
        for note in &self.notes {
            writeln!(out, "\n{}", cell(note))?;
        }
        Ok(())
    }
}

/// The best in bold, the second underlined.
fn placed(text: String, place: Option<TopPlace>) -> String {
    match place {
        None => text,
        Some(TopPlace::First) => format!("**{text}**"),
        Some(TopPlace::Second) => format!("<u>{text}</u>"),
    }
}

/// A text that stays in its cell and contains no markup.
fn cell(text: &str) -> String {
    let mut escaped = String::new();
    for c in printable(text).chars() {
        match c {
            '\n' | '\t' => escaped.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '<' | '>' | '\\' => {
                escaped.push('\\');
                escaped.push(c);
            }
            _ => escaped.push(c),
        }
    }
    escaped
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

    #[test]
    fn rows_are_objects() {
        let json = example().to_json();
        assert_eq!(json["rows"][0]["mean"], 0.123_456);
        assert_eq!(json["rows"][1]["n"], serde_json::Value::Null);
        assert_eq!(json["rows"].as_array().unwrap().len(), 2);
        assert_eq!(json["notes"][0], "Read with care.");
    }

    #[test]
    fn markup_in_cells_stays_text() {
        let mut out = Vec::new();
        example().write_markdown(&mut out).unwrap();
        let expected = "### Example\n\n| task | n | mean |\n| --- | ---: | ---: |\n| a\\|b | 20 | 0.123 |\n\
                        | =1+1 | - | 0.500 (7/20) |\n| **all** | **20** | **-** |\n\nRead with care.\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

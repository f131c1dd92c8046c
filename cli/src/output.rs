//! Output for people: tables on standard output, messages on standard error.

use std::io::{self, Write};

use domain::text::with_causes;
use serde_json::{Value, json};

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table with a header and columns of minimal width.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    /// Whether a rule is drawn above the last row.
    total: bool,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        Self { columns, rows: Vec::new(), total: false }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Adds the last row, with a rule above it.
    pub fn total(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
        self.total = true;
    }

    /// Writes the table.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.chain([&self.columns[column].0]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>, out: &mut dyn Write| -> io::Result<()> {
            let mut text = String::new();
            for ((cell, (_, align)), width) in cells.zip(&self.columns).zip(&widths) {
                match align {
                    Align::Left => text.push_str(&format!("{cell:<width$}  ")),
                    Align::Right => text.push_str(&format!("{cell:>width$}  ")),
                }
            }
            writeln!(out, "{}", text.trim_end())
        };
        let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
        line(&mut self.columns.iter().map(|(name, _)| name.as_str()), out)?;
        writeln!(out, "{rule}")?;
        for (index, row) in self.rows.iter().enumerate() {
            if self.total && index + 1 == self.rows.len() {
                writeln!(out, "{rule}")?;
            }
            line(&mut row.iter().map(String::as_str), out)?;
        }
        Ok(())
    }
}

/// A share as a percentage, never rounded up to `100.00 %`: 100 means all.
pub fn percent(share: f64) -> String {
    if share >= 1.0 {
        return "100 %".to_owned();
    }
    let shown = (share * 10_000.0).floor() / 100.0;
    format!("{shown:.2} %")
}

/// A measured number with two significant digits, because more would only flicker. 0 is `0`.
pub fn figure(number: f64) -> String {
    if !number.is_finite() || number <= 0.0 {
        return "0".to_owned();
    }
    // Rounded first: 9.96 has as many digits before the point as 10.
    let digits = |number: f64| number.log10().floor() as i32;
    let unit = 10_f64.powi(digits(number) - 1);
    let rounded = (number / unit).round() * unit;
    let places = usize::try_from(1 - digits(rounded * (1.0 + f64::EPSILON))).unwrap_or_default();
    format!("{rounded:.places$}")
}

/// A duration in at most two units.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round().clamp(0.0, 1e12) as u64;
    match (whole / 86_400, whole / 3600 % 24, whole / 60 % 60, whole % 60) {
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, s) => format!("{m}m {s:02}s"),
        (0, h, m, _) => format!("{h}h {m:02}m"),
        (d, h, _, _) => format!("{d}d {h:02}h"),
    }
}

/// An external text without control characters, so that it cannot control a terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// The value with every text replaced by its length in characters, for protected exercises.
pub fn redacted(value: &Value) -> Value {
    match value {
        Value::String(text) => json!({ "redacted_chars": text.chars().count() }),
        Value::Array(items) => items.iter().map(redacted).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), redacted(value))).collect(),
        other => other.clone(),
    }
}

/// An error with its causes, for people.
pub fn explain(error: &anyhow::Error) -> String {
    printable(&with_causes(error.as_ref()))
}

/// Writes a line to standard error and ignores failures: a signal must work even if standard error is closed.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Whether standard output was closed by its reader, such as `head`, which is not a failure.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_the_total_is_ruled_off() {
        let mut table = Table::new(&[("task", Align::Left), ("n", Align::Right)]);
        table.row(vec!["a".into(), "1".into()]);
        table.total(vec!["total".into(), "10".into()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let expected = "task    n\n---------\na       1\n---------\ntotal  10\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn causes_are_told_once() {
        let inner = anyhow::anyhow!("no such file");
        assert_eq!(
            explain(&inner.context("a.toml: no such file").context("cannot plan")),
            "cannot plan: a.toml: no such file"
        );
    }

    #[test]
    fn nearly_everything_is_not_everything() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.999_999), "99.99 %");
        assert_eq!(percent(0.5), "50.00 %");
    }

    #[test]
    fn measured_numbers_have_two_digits_and_times_two_units() {
        let numbers = [0.0, 0.0123, 0.0996, 0.25, 1.0, 1.56, 9.96, 15.4, 153.0, 9_307_824.940_5];
        let shown = ["0", "0.012", "0.10", "0.25", "1.0", "1.6", "10", "15", "150", "9300000"];
        assert_eq!(numbers.map(figure), shown);
        assert_eq!([5.2, 65.0, 7260.0, 200_000.0].map(duration), ["5s", "1m 05s", "2h 01m", "2d 07h"]);
    }

    #[test]
    fn terminals_cannot_be_steered() {
        assert_eq!(printable("a\u{1b}[31mb\u{7}"), "a\u{fffd}[31mb\u{fffd}");
    }
}

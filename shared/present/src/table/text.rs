//! Tables as text for terminals: columns as wide as their content, without characters that could steer the terminal.

use std::io::{self, Write};

use super::{Align, Table};

/// Maximum number of characters of a cell; longer texts are cut. Names are bounded elsewhere, but foreign runs may
/// contain longer ones, and a formatter panics at widths beyond 65 535.
const CELL_CHARS_MAX: usize = 1_000;

impl Table {
    /// Writes the table as text.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let heads: Vec<String> = self
            .headings
            .iter()
            .map(|heading| cut(printable(heading.short.as_ref().unwrap_or(&heading.name))))
            .collect();
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(|cell| cut(flat(&cell.shown()))).collect()).collect();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.chain([&heads[column]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        let line = |cells: &[String], out: &mut dyn Write| -> io::Result<()> {
            let mut text = String::new();
            for ((cell, heading), width) in cells.iter().zip(&self.headings).zip(&widths) {
                match heading.align {
                    Align::Left => text.push_str(&format!("{cell:<width$}  ")),
                    Align::Right => text.push_str(&format!("{cell:>width$}  ")),
                }
            }
            writeln!(out, "{}", text.trim_end())
        };
        let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
        line(&heads, out)?;
        writeln!(out, "{rule}")?;
        for (index, row) in rows.iter().enumerate() {
            if self.total && index + 1 == rows.len() {
                writeln!(out, "{rule}")?;
            }
            line(row, out)?;
        }
        let legend: Vec<_> =
            self.headings.iter().filter_map(|h| Some((h.short.as_ref()?, &h.name))).collect();
        if !legend.is_empty() {
            writeln!(out)?;
        }
        for (short, name) in legend {
            writeln!(out, "{short:>4}  {}", flat(name))?;
        }
        for note in &self.notes {
            writeln!(out, "{}", printable(note))?;
        }
        Ok(())
    }
}

/// The text on one line.
pub(super) fn flat(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

/// A text of at most [`CELL_CHARS_MAX`] characters.
fn cut(text: String) -> String {
    match text.char_indices().nth(CELL_CHARS_MAX - 1) {
        Some((end, _)) if text.chars().count() > CELL_CHARS_MAX => format!("{}…", &text[..end]),
        _ => text,
    }
}

/// A text from outside, without characters that [steer](steers).
pub fn printable(text: &str) -> String {
    let kept = |c: char| c == '\n' || c == '\t' || !steers(c);
    text.chars().map(|c| if kept(c) { c } else { '\u{fffd}' }).collect()
}

/// Whether a character could steer a terminal or mislead a reader: control characters and direction marks.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Cell;

    fn text(table: &Table) -> String {
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_the_total_is_ruled_off() {
        let mut table = Table::default().left(["task"]).right(["n"]);
        table.row(["a", "1"]);
        table.total(["total", "10"]);
        assert_eq!(text(&table), "task    n\n---------\na       1\n---------\ntotal  10\n");
    }

    #[test]
    fn short_headings_have_a_legend() {
        let mut table = Table::default().left(["model"]);
        table.shortened("RdfFriendCount-nt-1", "1");
        table.row([Cell::from("m"), Cell::Number(0.5, 3)]);
        table.notes.push("a note".to_owned());
        assert_eq!(
            text(&table),
            "model      1\n------------\nm      0.500\n\n   1  RdfFriendCount-nt-1\na note\n"
        );
    }

    #[test]
    fn a_text_without_end_is_cut_and_takes_no_table_with_it() {
        let mut table = Table::default().left(["run"]).right(["n"]);
        table.row(["x".repeat(70_000), "1".to_owned()]);
        table.row(["y".to_owned(), "2".repeat(70_000)]);
        let lines: Vec<usize> = text(&table).lines().map(|line| line.chars().count()).collect();
        assert!(lines.iter().all(|chars| *chars <= 2 * CELL_CHARS_MAX + 2), "{lines:?}");
        assert_eq!(text(&table).matches('…').count(), 2);
    }

    #[test]
    fn terminals_cannot_be_steered() {
        assert_eq!(printable("a\u{1b}[31mb\u{7}"), "a\u{fffd}[31mb\u{fffd}");
        assert_eq!(printable("a\u{202e}b\u{2066}"), "a\u{fffd}b\u{fffd}");
        let mut table = Table::default().left(["m\u{1b}c"]);
        table.row(["two\nlines"]);
        assert_eq!(text(&table), "m\u{fffd}c\n---------\ntwo lines\n");
    }
}

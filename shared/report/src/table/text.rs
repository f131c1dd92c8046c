//! Tables as text: columns as wide as their content, without characters that could steer a terminal. On a screen of a given
//! width nothing is broken into two lines by the terminal: first texts give way, the longest first; then columns move into further
//! blocks below, each beginning with the first column. Remarks, the texts of a last column without a name, stand below as sentences.

use std::io::{self, Write};

use domain::text::steers;

use super::{Align, Cell, Table};

/// Maximum number of characters of a cell; longer texts are cut. Names are bounded elsewhere, but foreign runs may
/// contain longer ones, and a formatter panics at widths beyond 65 535.
const CELL_CHARS_MAX: usize = 1_000;

/// Characters that a text keeps when others need its room.
const TEXT_MIN: usize = 12;

/// Characters between two columns.
const GAP: usize = 2;

impl Table {
    /// Writes the table as text, with lines of at most `width` characters, if that can be done at all; of any length without it.
    pub fn write(&self, width: Option<usize>, out: &mut dyn Write) -> io::Result<()> {
        let has_remarks = width.is_some()
            && self.headings.len() > 1
            && self.headings.last().is_some_and(|last| last.name.is_empty() && last.align == Align::Left);
        let columns = self.headings.len() - usize::from(has_remarks);
        let heads =
            self.headings.iter().take(columns).map(|heading| heading.short.as_ref().unwrap_or(&heading.name));
        let heads: Vec<String> = heads.map(|head| cut(&printable(head), CELL_CHARS_MAX)).collect();
        let shown = |cell: &Cell| cut(&flat(&cell.shown()), CELL_CHARS_MAX);
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().take(columns).map(shown).collect()).collect();
        let natural = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.chain([&heads[column]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns).map(natural).collect();
        if let Some(width) = width {
            self.shrink(&mut widths, width);
        }
        let width = width.unwrap_or(usize::MAX);
        for (number, block) in blocks(&widths, width).iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            let line = |cells: &[String]| {
                let cell = |column: &usize| {
                    let width = widths[*column];
                    let text = cut(cells.get(*column).map_or("", String::as_str), width);
                    match self.headings[*column].align {
                        Align::Left => format!("{text:<width$}"),
                        Align::Right => format!("{text:>width$}"),
                    }
                };
                block.iter().map(cell).collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
            };
            let rule = "-".repeat(span(block.iter().map(|column| widths[*column])));
            writeln!(out, "{}\n{rule}", line(&heads))?;
            for (index, row) in rows.iter().enumerate() {
                if self.total && index + 1 == rows.len() {
                    writeln!(out, "{rule}")?;
                }
                writeln!(out, "{}", line(row))?;
            }
        }
        let remarks = self.rows.iter().filter(|_| has_remarks).filter_map(|row| {
            let (name, remark) = (row.first()?.shown(), row.last()?.shown());
            (!remark.is_empty() && remark != "-").then(|| format!("{}: {}", flat(&name), flat(&remark)))
        });
        remarks.into_iter().try_for_each(|remark| write_wrapped(&remark, width, out))?;
        let legend: Vec<_> =
            self.headings.iter().filter_map(|h| Some((h.short.as_ref()?, &h.name))).collect();
        if !legend.is_empty() {
            writeln!(out)?;
        }
        for (short, name) in legend {
            writeln!(out, "{short:>4}  {}", flat(name))?;
        }
        self.notes.iter().try_for_each(|note| match width {
            usize::MAX => writeln!(out, "{}", printable(note)),
            width => write_wrapped(&printable(note), width, out),
        })
    }

    /// Takes from the longest texts what does not fit. The first column names its row, to be copied into the next command: it is
    /// cut only as far as it leaves no room for any other one.
    fn shrink(&self, widths: &mut [usize], width: usize) {
        let Some((first, others)) = widths.split_first_mut() else { return };
        while span(others.iter().copied().chain([*first])) > width {
            let texts = others.iter_mut().zip(&self.headings[1..]);
            let texts = texts.filter(|(width, heading)| heading.align == Align::Left && **width > TEXT_MIN);
            match texts.map(|(width, _)| width).max_by_key(|width| **width) {
                Some(longest) => *longest -= 1,
                None => break,
            }
        }
        let widest = others.iter().max().map_or(0, |widest| widest + GAP);
        *first = (*first).min(width.saturating_sub(widest).max(TEXT_MIN));
    }
}

/// The columns of each block.
fn blocks(widths: &[usize], width: usize) -> Vec<Vec<usize>> {
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    for column in 0..widths.len() {
        let fits =
            |block: &Vec<usize>| span(block.iter().chain([&column]).map(|column| widths[*column])) <= width;
        match blocks.last_mut() {
            Some(block) if fits(block) || block.len() == 1 => block.push(column),
            Some(_) => blocks.push(vec![0, column]),
            None => blocks.push(vec![column]),
        }
    }
    blocks
}

/// The width of some columns beside each other.
fn span(widths: impl Iterator<Item = usize>) -> usize {
    let (sum, columns) = widths.fold((0, 0_usize), |(sum, columns), width| (sum + width, columns + 1));
    sum + GAP * columns.saturating_sub(1)
}

/// Writes a text in lines of at most this many characters, broken at spaces; further lines are indented. A longer word stays
/// whole.
pub fn write_wrapped(text: &str, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        let length = line.chars().count();
        if !line.trim().is_empty() && length + 1 + word.chars().count() > width {
            writeln!(out, "{line}")?;
            line = " ".to_owned();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{line}")
}

/// The text on one line.
pub(super) fn flat(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

/// A text of at most so many characters; of a longer one the beginning, with a mark.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// A text from outside, without characters that [steer](steers).
pub fn printable(text: &str) -> String {
    let kept = |c: char| c == '\n' || c == '\t' || !steers(c);
    text.chars().map(|c| if kept(c) { c } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &Table) -> String {
        let mut out = Vec::new();
        table.write(None, &mut out).unwrap();
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

    fn within(table: &Table, width: usize) -> String {
        let mut out = Vec::new();
        table.write(Some(width), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn what_fits_is_written_as_it_is_and_remarks_stand_below() {
        let mut table = Table::default().left(["run"]).right(["n"]).left([""]);
        table.row(["a", "1", "blocked: one (no worker serves it)"]);
        table.row(["b", "22", ""]);
        table.row([Cell::from("all"), Cell::Count(23), Cell::Empty]);
        assert_eq!(
            within(&table, 80),
            "run   n\n-------\na     1\nb    22\nall  23\na: blocked: one (no worker serves it)\n"
        );
        assert!(widest(&within(&table, 20)) <= 20, "{}", within(&table, 20));
    }

    #[test]
    fn long_texts_are_cut_before_numbers_move() {
        let mut table = Table::default().left(["model"]).right(["done"]);
        table.row(["organisation/model-with-a-long-name", "12/40"]);
        assert_eq!(within(&table, 24).lines().last(), Some("organisation/mod…  12/40"));
    }

    #[test]
    fn columns_that_find_no_room_stand_in_blocks_below() {
        let names: Vec<String> = (0..9).map(|n| format!("model-{n:02}")).collect();
        let mut table = Table::default().left(["task"]).right(names);
        table.row(["t".to_owned()].into_iter().chain((0..9).map(|n| format!("0.{n}00"))));
        let shown = within(&table, 40);
        assert!(widest(&shown) <= 40, "{shown}");
        assert_eq!(shown.matches("task").count(), 3, "{shown}");
        for n in 0..9 {
            assert!(
                shown.contains(&format!("model-{n:02}")) && shown.contains(&format!("0.{n}00")),
                "{shown}"
            );
        }
        assert!(within(&Table::default(), 40).trim().is_empty());
    }
}

//! Tables as text on a screen of a given width: nothing is broken into two lines by the terminal.
//!
//! First texts give way, the longest first; then columns move into further blocks below, each beginning with the first column.
//! Remarks, the texts of a last column without a name, stand below as sentences.

use std::io::{self, Write};

use super::text::{flat, printable};
use super::{Align, Cell, Table};

/// Characters that a text keeps when others need its room.
const TEXT_MIN: usize = 12;

/// Characters between two columns.
const GAP: usize = 2;

impl Table {
    /// Writes the table as text with lines of at most `width` characters, if that can be done at all.
    pub fn write_within(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let has_remarks =
            self.headings.last().is_some_and(|last| last.name.is_empty() && last.align == Align::Left);
        let columns = self.headings.len() - usize::from(has_remarks && self.headings.len() > 1);
        let heads: Vec<String> =
            self.headings.iter().take(columns).map(|heading| printable(&heading.name)).collect();
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().take(columns).map(|cell| flat(&cell.shown())).collect())
            .collect();
        let natural = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.chain([&heads[column]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns).map(natural).collect();
        self.shrink(&mut widths, width);
        for (number, block) in blocks(&widths, width).iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            let line = |cells: &[String]| {
                let cell = |column: &usize| {
                    let (text, width) = (cut(&cells[*column], widths[*column]), widths[*column]);
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
        if columns < self.headings.len() {
            for row in &self.rows {
                let (first, last) = (row.first().map(Cell::shown), row.last().map(Cell::shown));
                if let (Some(name), Some(remark)) =
                    (first, last.filter(|remark| !remark.is_empty() && remark != "-"))
                {
                    write_wrapped(&format!("{}: {}", flat(&name), flat(&remark)), width, out)?;
                }
            }
        }
        self.notes.iter().try_for_each(|note| write_wrapped(&printable(note), width, out))
    }

    /// Takes from the longest texts what does not fit.
    fn shrink(&self, widths: &mut [usize], width: usize) {
        while span(widths.iter().copied()) > width {
            let texts =
                widths.iter_mut().zip(&self.headings).filter(|(_, heading)| heading.align == Align::Left);
            match texts.map(|(width, _)| width).filter(|width| **width > TEXT_MIN).max_by_key(|width| **width)
            {
                Some(longest) => *longest -= 1,
                None => return,
            }
        }
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

/// The beginning of a text that is too long, with a mark.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &Table, width: usize) -> String {
        let mut out = Vec::new();
        table.write_within(width, &mut out).unwrap();
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
            text(&table, 80),
            "run   n\n-------\na     1\nb    22\nall  23\na: blocked: one (no worker serves it)\n"
        );
        assert!(widest(&text(&table, 20)) <= 20, "{}", text(&table, 20));
    }

    #[test]
    fn long_texts_are_cut_before_numbers_move() {
        let mut table = Table::default().left(["model"]).right(["done"]);
        table.row(["organisation/model-with-a-long-name", "12/40"]);
        assert_eq!(text(&table, 24).lines().last(), Some("organisation/mod…  12/40"));
    }

    #[test]
    fn columns_that_find_no_room_stand_in_blocks_below() {
        let names: Vec<String> = (0..9).map(|n| format!("model-{n:02}")).collect();
        let mut table = Table::default().left(["task"]).right(names);
        table.row(["t".to_owned()].into_iter().chain((0..9).map(|n| format!("0.{n}00"))));
        let shown = text(&table, 40);
        assert!(widest(&shown) <= 40, "{shown}");
        assert_eq!(shown.matches("task").count(), 3, "{shown}");
        for n in 0..9 {
            assert!(
                shown.contains(&format!("model-{n:02}")) && shown.contains(&format!("0.{n}00")),
                "{shown}"
            );
        }
        assert!(text(&Table::default(), 40).trim().is_empty());
    }
}

//! Where text goes: a terminal of some width, or a file or program that takes lines of any length.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};

use rustix::termios::tcgetwinsize;
use serde::Serialize;

use crate::kit::output::{Table, print_json, write_wrapped};

/// Columns and lines of a terminal that does not say how many it has.
const COLUMNS: usize = 80;
const LINES: usize = 24;

/// What a text is, which a terminal shows by its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tint {
    Heading,
    Good,
    Middling,
    Bad,
}

impl Tint {
    /// The number by which terminals know it: bold, green, yellow, red.
    fn code(self) -> u8 {
        match self {
            Self::Heading => 1,
            Self::Good => 32,
            Self::Middling => 33,
            Self::Bad => 31,
        }
    }
}

/// Standard output.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns of the terminal; `None` if it is none.
    width: Option<usize>,
    /// Lines of the terminal.
    lines: usize,
    /// Whether texts have colours.
    coloured: bool,
}

impl Screen {
    /// What takes lines of any length.
    pub const FILE: Self = Self { width: None, lines: LINES, coloured: false };

    /// Standard output as it is now.
    pub fn here() -> Self {
        if !io::stdout().is_terminal() {
            return Self::FILE;
        }
        let size = tcgetwinsize(io::stdout()).ok();
        let told = |number: Option<u16>| number.filter(|number| *number > 0).map(usize::from);
        Self {
            width: Some(told(size.map(|size| size.ws_col)).unwrap_or(COLUMNS)),
            lines: told(size.map(|size| size.ws_row)).unwrap_or(LINES),
            coloured: wants_colours(env::var_os("NO_COLOR").as_deref(), env::var_os("TERM").as_deref()),
        }
    }

    /// Whether a text can be seen at once, with a line to spare for the prompt. Where there is no terminal, any can.
    pub fn holds(self, text: &str) -> bool {
        let Some(width) = self.width else { return true };
        let lines = text.lines().map(|line| columns_of(line).div_ceil(width).max(1));
        lines.sum::<usize>() < self.lines
    }

    /// The line above a part of what is written.
    pub fn heading(self, title: &str) -> String {
        self.tinted(&format!("--- {title} ---"), Tint::Heading)
    }

    /// A text of one line in its colour.
    pub fn tinted(self, text: &str, tint: Tint) -> String {
        if self.coloured { format!("\x1b[{}m{text}\x1b[0m", tint.code()) } else { text.to_owned() }
    }

    /// Writes a table: within the width of a terminal, and a line for each row to everybody else.
    pub fn table(self, table: &Table, out: &mut dyn Write) -> io::Result<()> {
        table.write(self.width, out)
    }

    /// Writes a sentence.
    pub fn line(self, text: &str, out: &mut dyn Write) -> io::Result<()> {
        match self.width {
            Some(width) => write_wrapped(text, width, out),
            None => writeln!(out, "{text}"),
        }
    }
}

/// Prints a line of JSON for each of these, or a table of them all.
pub fn print_all<T: Serialize>(
    all: &[T],
    json: bool,
    table: impl FnOnce(&[T]) -> Table,
) -> anyhow::Result<()> {
    if json {
        return all.iter().try_for_each(print_json);
    }
    Ok(Screen::here().table(&table(all), &mut io::stdout().lock())?)
}

/// Whether a terminal of this kind gets colours, by the variable with which users decline them (no-color.org).
fn wants_colours(declined: Option<&OsStr>, terminal: Option<&OsStr>) -> bool {
    declined.is_none_or(OsStr::is_empty) && terminal.is_some_and(|terminal| terminal != "dumb")
}

/// About how many columns a line takes; colours take none.
fn columns_of(line: &str) -> usize {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default();
    let behind_colours = parts.map(|part| part.split_once('m').map_or(part, |(_, text)| text));
    first.chars().count() + behind_colours.map(|text| text.chars().count()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_declined_by_a_variable_and_by_terminals_that_have_none() {
        let wants = |declined: Option<&str>, terminal: Option<&str>| {
            wants_colours(declined.map(OsStr::new), terminal.map(OsStr::new))
        };
        assert!(wants(None, Some("xterm")) && wants(Some(""), Some("xterm")));
        assert!(!wants(Some("1"), Some("xterm")) && !wants(None, Some("dumb")) && !wants(None, None));
    }

    #[test]
    fn a_screen_holds_what_leaves_a_line_for_the_prompt() {
        let screen = Screen { width: Some(10), lines: 4, coloured: true };
        assert!(screen.holds("one\n\nthree\n") && !screen.holds("one\n\nthree\nfour\n"));
        assert!(!screen.holds("one\ntwo\n01234567890\n"), "a long line takes two");
        let red = screen.tinted("0123456789", Tint::Bad);
        assert_eq!(red, "\x1b[31m0123456789\x1b[0m");
        assert!(screen.holds(&format!("one\ntwo\n{red}\n")));
        let plain = Screen { width: None, lines: 4, coloured: false };
        assert!(plain.holds(&"\n".repeat(100)));
        assert_eq!(plain.tinted("x", Tint::Heading), "x");
    }
}

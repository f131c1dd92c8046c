//! Where text goes: a terminal of some width, or a file or program that takes lines of any length.

use std::io::{self, IsTerminal, Write};

use crate::kit::output::{Table, write_wrapped};

/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// Standard output.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns of the terminal; `None` if it is none.
    width: Option<usize>,
}

impl Screen {
    /// Standard output as it is now.
    pub fn here() -> Self {
        let columns = || crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
        let width =
            io::stdout().is_terminal().then(|| columns().filter(|columns| *columns > 0).unwrap_or(COLUMNS));
        Self { width }
    }

    /// Writes a table: within the width of a terminal, and a line for each row to everybody else.
    pub fn table(self, table: &Table, out: &mut dyn Write) -> io::Result<()> {
        match self.width {
            Some(width) => table.write_within(width, out),
            None => table.write(out),
        }
    }

    /// Writes a sentence.
    pub fn line(self, text: &str, out: &mut dyn Write) -> io::Result<()> {
        match self.width {
            Some(width) => write_wrapped(text, width, out),
            None => writeln!(out, "{text}"),
        }
    }
}

//! Mistakes in a task file, each with its place. They are collected while a file is read, so that an author sees them together
//! and need not run the program once for each. The first `MISTAKES_MAX` are told, and the others are counted.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use domain::spelling;

/// Most mistakes of one file that are told.
const MISTAKES_MAX: usize = 20;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line in the file, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong and what to do.
    pub message: String,
}

/// Why a task file cannot be used: at least one mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    /// The file as it was named.
    pub file: String,
    /// In the order of the file, 20 at most.
    pub list: Vec<Mistake>,
    /// How many more there are.
    pub untold: usize,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, mistake) in self.list.iter().enumerate() {
            let separator = if number == 0 { "" } else { "\n" };
            let Mistake { line, column, message } = mistake;
            write!(f, "{separator}{}:{line}:{column}: {message}", self.file)?;
        }
        match self.untold {
            0 => Ok(()),
            untold => write!(f, "\nand {untold} more"),
        }
    }
}

impl std::error::Error for Mistakes {}

/// Collects the mistakes of a file while it is read.
pub(crate) struct MistakeList<'s> {
    file: String,
    source: &'s str,
    found: RefCell<Vec<(usize, String)>>,
}

impl<'s> MistakeList<'s> {
    pub(crate) fn new(file: &str, source: &'s str) -> Self {
        Self { file: file.to_owned(), source, found: RefCell::default() }
    }

    /// Adds a mistake at a byte of the file.
    pub(crate) fn add(&self, at: usize, message: impl Into<String>) {
        self.found.borrow_mut().push((at, message.into()));
    }

    /// [`add`](Self::add) at the start of a range.
    pub(crate) fn at(&self, place: &Range<usize>, message: impl Into<String>) {
        self.add(place.start, message);
    }

    /// The line of a byte, from 1.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        place_of(self.source, at).0
    }

    /// Goes on only if there is no mistake yet.
    pub(crate) fn none_yet(&self) -> Result<(), Mistakes> {
        let mut found = self.found.borrow().clone();
        if found.is_empty() {
            return Ok(());
        }
        found.sort();
        found.dedup();
        let untold = found.len().saturating_sub(MISTAKES_MAX);
        let list = found.into_iter().take(MISTAKES_MAX).map(|(at, message)| {
            let (line, column) = place_of(self.source, at);
            Mistake { line, column, message }
        });
        Err(Mistakes { file: self.file.clone(), list: list.collect(), untold })
    }
}

/// Line and column of a byte, both from 1, the column in characters.
fn place_of(source: &str, at: usize) -> (usize, usize) {
    let before = source.get(..at).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (line, column)
}

/// What names may be meant by one that nobody knows, as the end of a message; empty if none is near.
pub(crate) fn hint<'k>(unknown: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    spelling::question(unknown, known).map_or_else(String::new, |question| format!("; {question}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_stand_in_the_order_of_the_file_and_the_rest_is_counted() {
        let list = MistakeList::new("a.toml", "aä\nb");
        assert_eq!(list.none_yet(), Ok(()));
        list.add(4, "second");
        list.add(3, "first");
        assert_eq!(list.none_yet().unwrap_err().to_string(), "a.toml:1:3: first\na.toml:2:1: second");
        (0..30).for_each(|number| list.add(0, format!("{number}")));
        assert!(list.none_yet().unwrap_err().to_string().ends_with("\nand 12 more"));
    }
}

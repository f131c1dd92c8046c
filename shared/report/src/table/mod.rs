//! A table: headings, rows of typed cells, notes. It is written as [`text`] for terminals, as Markdown, CSV and JSON,
//! and together with others as a workbook. Every table that the program prints is one of these.
//!
//! A table with a row for each of a million records is never held: [`CsvRows`] and [`xlsx::SheetRows`]
//! take one row after the other, as slices of [`RowCell`]s under [`RowColumn`]s.

mod plain;
mod text;
pub mod xlsx;

use std::borrow::Cow;
use std::cmp::Ordering;

use domain::spelling;
use jiff::Timestamp;

pub use plain::{CsvRows, guard_formula};
pub use text::{printable, write_wrapped};
pub use xlsx::write_workbook;

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    pub name: String,
    pub align: Align,
    /// A shorter name for narrow output; a legend explains it.
    pub short: Option<String>,
}

/// The best two values of a column: bold and underlined, or marked where fonts have neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopPlace {
    First,
    Second,
}

impl TopPlace {
    pub fn mark(self) -> char {
        match self {
            Self::First => '*',
            Self::Second => '+',
        }
    }
}

/// The content of a cell. Tables that are written while their rows are read borrow the texts.
#[derive(Clone, Debug, PartialEq)]
pub enum RowCell<'a> {
    /// Unknown.
    Empty,
    Text(Cow<'a, str>),
    Count(u64),
    /// A number, and how many digits after the point people see, or [`ALL_DIGITS`]. Files get all digits.
    Number(f64, usize),
    /// A number that is one of the best two of its column.
    Placed(f64, usize, TopPlace),
    /// A text for people, with the number that it contains, for files and sorting.
    Told(String, Option<f64>),
    Flag(bool),
    Time(Timestamp),
}

/// A cell that holds its text.
pub type Cell = RowCell<'static>;

/// As many digits as a number has.
pub const ALL_DIGITS: usize = usize::MAX;

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned().into())
    }
}

impl RowCell<'_> {
    /// A number that may be unknown.
    pub fn number(value: Option<f64>, places: usize) -> Self {
        value.map_or(Self::Empty, |value| Self::Number(value, places))
    }

    /// A count that may be unknown.
    pub fn count(value: Option<u64>) -> Self {
        value.map_or(Self::Empty, Self::Count)
    }

    /// A p value.
    pub fn p(value: Option<f64>) -> Self {
        Self::small(value, 4)
    }

    /// A number between 0 and 1 with this many digits after the point; a smaller one is shown as less than the
    /// smallest.
    pub fn small(value: Option<f64>, places: usize) -> Self {
        match value {
            None => Self::Empty,
            Some(number) if number < 10_f64.powi(-(places as i32)) => {
                Self::Told(format!("<0.{}1", "0".repeat(places.saturating_sub(1))), Some(number))
            }
            Some(number) => Self::Number(number, places),
        }
    }

    /// The text that people see.
    pub fn shown(&self) -> String {
        match self {
            Self::Empty => "-".to_owned(),
            Self::Text(text) => text.clone().into_owned(),
            Self::Told(text, _) => text.clone(),
            Self::Flag(flag) => flag.to_string(),
            Self::Count(count) => count.to_string(),
            Self::Placed(number, places, place) => {
                format!("{} {}", Self::Number(*number, *places).shown(), place.mark())
            }
            Self::Number(number, _) if !number.is_finite() => "-".to_owned(),
            Self::Number(number, ALL_DIGITS) => number.to_string(),
            Self::Number(number, places) => {
                let shown = format!("{number:.places$}");
                // No minus before nothing.
                let zero = shown.trim_start_matches('-').chars().all(|c| c == '0' || c == '.');
                if zero { shown.trim_start_matches('-').to_owned() } else { shown }
            }
            Self::Time(time) => time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        }
    }

    /// Whether it is one of the best two of its column.
    pub fn place(&self) -> Option<TopPlace> {
        match self {
            Self::Placed(.., place) => Some(*place),
            _ => None,
        }
    }

    /// Its number, for sorting and for files.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Number(number, _) | Self::Placed(number, ..) => {
                Some(*number).filter(|number| number.is_finite())
            }
            Self::Told(_, number) => number.filter(|number| number.is_finite()),
            Self::Empty | Self::Text(_) | Self::Flag(_) | Self::Time(_) => None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Its title, which is also the name of its sheet or the heading on a page.
    pub title: String,
    headings: Vec<Heading>,
    rows: Vec<Vec<Cell>>,
    /// Whether the last row sums up the others.
    total: bool,
    /// Notes for readers.
    pub notes: Vec<String>,
}

impl Table {
    /// The table with further columns of texts.
    #[must_use]
    pub fn left<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.columns(names, Align::Left)
    }

    /// The table with further columns of numbers.
    #[must_use]
    pub fn right<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.columns(names, Align::Right)
    }

    fn columns<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>, align: Align) -> Self {
        let heading = |name: N| Heading { name: name.into(), align, short: None };
        self.headings.extend(names.into_iter().map(heading));
        self
    }

    /// The same with a title.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Adds a column of numbers with a shorter name for narrow output.
    pub fn shortened(&mut self, name: impl Into<String>, short: impl Into<String>) {
        self.headings.push(Heading { name: name.into(), align: Align::Right, short: Some(short.into()) });
    }

    /// Adds a row.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Keeps at most so many rows, the first ones.
    pub fn truncate(&mut self, rows: usize) {
        self.total &= rows >= self.rows.len();
        self.rows.truncate(rows);
    }

    /// Adds the last row, which sums up the others.
    pub fn total<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.row(cells);
        self.total = true;
    }

    /// The table without the columns that say the same in every row: a note says it once. The first column with a name stays, and
    /// a table of one row.
    #[must_use]
    pub fn folded(mut self) -> Self {
        let names_row = self.headings.iter().position(|heading| !heading.name.is_empty());
        let same = |column: usize| {
            let mut cells = self.rows.iter().map(|row| &row[column]);
            let first = cells.next();
            first.filter(|first| self.rows.len() > 1 && cells.all(|cell| cell == *first))
        };
        let (mut kept, mut told, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        for (column, heading) in self.headings.iter().enumerate() {
            match same(column).filter(|_| Some(column) != names_row) {
                None => kept.push(column),
                Some(_) if heading.name.is_empty() => {}
                Some(Cell::Empty) => unknown.push(heading.name.as_str()),
                Some(cell) => told.push(format!("{} {}", heading.name, cell.shown())),
            }
        }
        let mut notes = Vec::new();
        if !told.is_empty() {
            notes.push(format!("The same in every row: {}.", told.join(", ")));
        }
        if !unknown.is_empty() {
            notes.push(format!("Not known of any row: {}.", unknown.join(", ")));
        }
        self.headings = kept.iter().map(|&column| self.headings[column].clone()).collect();
        for row in &mut self.rows {
            *row = kept.iter().map(|&column| row[column].clone()).collect();
        }
        self.notes.splice(0..0, notes);
        self
    }

    pub fn headings(&self) -> &[Heading] {
        &self.headings
    }

    /// All rows, the total last.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowColumn {
    pub name: String,
    pub kind: ColumnKind,
    /// What its values are, for people.
    pub meaning: &'static str,
}

/// What the cells of a column hold, unless they are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    Text,
    Integer,
    Number,
    Flag,
    Time,
}

/// The column with the exercises. Rows on different exercises are never ranked together.
const EXERCISES: &str = "exercises";

impl Table {
    /// Sorts the rows by the column with this heading: numbers from the highest, texts from A; `reversed` the other way
    /// round. Rows without a value come last, then the total. Rows on different exercises stay apart.
    ///
    /// # Errors
    /// There is no such column; the message lists the columns.
    pub fn sort_by(&mut self, column: &str, reversed: bool) -> Result<(), String> {
        let place = |name: &str| self.headings.iter().position(|heading| heading.name == name);
        let Some(at) = place(column) else {
            let offered = spelling::offer(column, self.headings.iter().map(|heading| heading.name.as_str()));
            return Err(format!("there is no column `{column}`; {offered}"));
        };
        let exercises = place(EXERCISES);
        let mut sets: Vec<Cell> = Vec::new();
        for row in &self.rows {
            if let Some(set) = exercises.and_then(|at| row.get(at))
                && !sets.contains(set)
            {
                sets.push(set.clone());
            }
        }
        let set =
            |row: &[Cell]| exercises.and_then(|at| sets.iter().position(|set| row.get(at) == Some(set)));
        let end = self.body().len();
        self.rows[..end].sort_by(|a, b| {
            let (x, y) = (a.get(at).unwrap_or(&Cell::Empty), b.get(at).unwrap_or(&Cell::Empty));
            set(a).cmp(&set(b)).then_with(|| order(x, y, reversed))
        });
        Ok(())
    }
}

/// Compares two cells; empty cells come last in both directions.
fn order(a: &Cell, b: &Cell, reversed: bool) -> Ordering {
    let turned = |order: Ordering| if reversed { order.reverse() } else { order };
    match (a.value(), b.value()) {
        (Some(a), Some(b)) => turned(b.total_cmp(&a)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => match (text(a), text(b)) {
            (Some(a), Some(b)) => turned(a.cmp(&b)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        },
    }
}

fn text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => Some(text.clone().into_owned()).filter(|text| !text.is_empty()),
        Cell::Told(text, _) => Some(text.clone()).filter(|text| !text.is_empty()),
        Cell::Flag(flag) => Some(flag.to_string()),
        Cell::Time(time) => Some(time.to_string()),
        Cell::Empty | Cell::Count(_) | Cell::Number(..) | Cell::Placed(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with a cell of every kind.
    pub(super) fn example() -> Table {
        let mut table = Table::default().left(["task"]).right(["n", "mean"]).titled("Example");
        table.row([Cell::from("a|b"), Cell::Count(20), Cell::Number(0.123_456, 3)]);
        table.row([Cell::from("=1+1"), Cell::Empty, Cell::Told("0.500 (7/20)".to_owned(), Some(0.5))]);
        table.total([Cell::from("all"), Cell::Count(20), Cell::Number(f64::NAN, 3)]);
        table.notes.push("Read with care.".to_owned());
        table
    }

    #[test]
    fn what_every_row_says_is_said_once() {
        let mut table = Table::default().left(["", "model", "exercises", "size"]).right(["n", "mean"]);
        for (model, mean) in [("a", 0.5), ("a", 0.6)] {
            let cells = ["", model, "core", "x"].map(Cell::from);
            table.row(cells.into_iter().chain([Cell::Empty, Cell::Number(mean, 1)]));
        }
        let one = Table { rows: table.rows[..1].to_vec(), ..table.clone() };
        let folded = table.folded();
        let names: Vec<&str> = folded.headings().iter().map(|heading| heading.name.as_str()).collect();
        assert_eq!(names, ["model", "mean"]);
        assert_eq!(folded.rows()[1].iter().map(Cell::shown).collect::<Vec<_>>(), ["a", "0.6"]);
        let notes = ["The same in every row: exercises core, size x.", "Not known of any row: n."];
        assert_eq!(folded.notes, notes);
        assert_eq!(one.clone().folded(), one, "of one row, nothing is folded");
    }

    #[test]
    fn nothing_has_no_sign() {
        assert_eq!(Cell::Number(-0.000_01, 3).shown(), "0.000");
        assert_eq!(Cell::Number(-0.01, 2).shown(), "-0.01");
        assert_eq!(Cell::p(Some(1e-9)).shown(), "<0.0001");
        assert_eq!(Cell::small(Some(0.000_11), 5).shown(), "0.00011");
        assert_eq!(Cell::Number(f64::INFINITY, 2).value(), None);
    }

    fn table() -> Table {
        let mut table = Table::default().left(["model", "exercises"]).right(["mean"]);
        for (model, exercises, mean) in
            [("b", "x", Some(0.1)), ("c", "y", Some(0.9)), ("a", "x", None), ("d", "x", Some(0.2))]
        {
            table.row([Cell::from(model), Cell::from(exercises), Cell::number(mean, 1)]);
        }
        table.total([Cell::from("all"), Cell::Empty, Cell::Number(1.0, 1)]);
        table
    }

    fn models(table: &Table) -> String {
        table.rows().iter().map(|row| row[0].shown()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rows_are_ordered_within_their_exercises_and_the_total_stays_last() {
        let mut table = table();
        table.sort_by("mean", false).unwrap();
        assert_eq!(models(&table), "d b a c all");
        table.sort_by("mean", true).unwrap();
        assert_eq!(models(&table), "b d a c all");
        table.sort_by("model", false).unwrap();
        assert_eq!(models(&table), "a b d c all");
        assert!(table.sort_by("size", false).unwrap_err().contains("model, exercises, mean"));
    }
}

//! What a kind shows of its own: tables, figures, and the files that it reads for them beside records.

use std::any::Any;
use std::collections::BTreeMap;

use domain::ServiceError;
use report::draw::{Breadth, Drawn, Svg};
use report::html::{KindPage, PageTable};
use report::table::Table;

use crate::reading::BenchmarkReader;

/// What a kind shows of its benchmarks.
pub struct Showing {
    /// What people call the kind.
    pub title: &'static str,
    /// What its part of a report is called.
    pub heading: &'static str,
    /// Computes what its tables and figures are made of, of one benchmark.
    pub numbers: fn(&mut dyn BenchmarkReader, &Extras) -> Result<Box<KindNumbers>, ShowingError>,
    /// Brings the numbers of several benchmarks that are shown together onto what they have in common.
    pub relate: fn(&mut [&mut KindNumbers]),
    /// Its tables, of one benchmark or several; the first is the one that stands for the kind.
    pub shows: &'static [Show],
    /// The figures of each benchmark.
    pub figures: &'static [Figure],
    /// The files that its numbers can take into account.
    pub inputs: &'static [Input],
}

/// The numbers of one benchmark. Only the shows and figures of its kind look into them.
pub type KindNumbers = dyn Any;

/// A table of a kind.
pub struct Show {
    /// How it is asked for; no other kind has a table of this name but the same one.
    pub name: &'static str,
    /// What it shows, for people.
    pub about: &'static str,
    /// Whether a page shows it only to those who open it.
    pub is_folded: bool,
    /// Which of its rows a page shows; all are printed, exported and bundled.
    pub on_page: PageRows,
    /// Makes it of the numbers of some benchmarks of the kind.
    pub table: fn(&[&KindNumbers]) -> Table,
}

/// The rows of a table that a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRows {
    All,
    /// Those with the lowest numbers in this column, at most [`PAGE_ROWS_MAX`].
    Lowest(&'static str),
    /// None: the table is not on the page.
    None,
}

/// Maximum number of rows of a long table on a page.
pub const PAGE_ROWS_MAX: usize = 1_000;

/// A figure of a kind.
pub struct Figure {
    /// Its file's name without what comes after the dot.
    pub file: &'static str,
    /// Draws it of the numbers of one benchmark.
    pub draw: fn(&KindNumbers, Breadth) -> Svg,
}

/// A file that the numbers of a kind can take into account.
#[derive(Debug)]
pub struct Input {
    /// How it is given: the name of an option.
    pub name: &'static str,
    /// What it holds and what holds without it, for people.
    pub about: &'static str,
}

/// The texts of the [`Input`]s that were given.
#[derive(Clone, Debug, Default)]
pub struct Extras(BTreeMap<&'static str, String>);

impl Extras {
    /// Adds the text of an input.
    pub fn insert(&mut self, input: &Input, text: String) {
        self.0.insert(input.name, text);
    }

    /// What a file says, if it was given.
    ///
    /// # Errors
    /// It is invalid.
    pub fn parsed<T, E: std::fmt::Display>(
        &self,
        input: &Input,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, ShowingError> {
        let invalid = |error: E| ShowingError::Input { input: input.name, message: error.to_string() };
        self.0.get(input.name).map(|text| parse(text).map_err(invalid)).transpose()
    }
}

/// Why a benchmark has no numbers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShowingError {
    /// Its records cannot be read.
    #[error(transparent)]
    Records(#[from] ServiceError),
    /// A file beside it is invalid.
    #[error("--{input}: {message}")]
    Input {
        /// The [name](Input::name) of the input.
        input: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// It is not what the kind makes numbers of.
    #[error("{0}")]
    Unusable(String),
}

/// A benchmark with its numbers.
pub struct ShownBenchmark {
    pub name: String,
    /// Number of its models.
    pub models: usize,
    pub numbers: Box<KindNumbers>,
}

impl Showing {
    /// Brings some benchmarks that are shown together onto what they have in common.
    pub fn relate(&self, shown: &mut [ShownBenchmark]) {
        let mut numbers: Vec<&mut KindNumbers> = shown.iter_mut().map(|shown| &mut *shown.numbers).collect();
        (self.relate)(&mut numbers);
    }

    /// A table of some benchmarks of this kind.
    pub fn table(show: &Show, shown: &[ShownBenchmark]) -> Table {
        let numbers: Vec<&KindNumbers> = shown.iter().map(|shown| &*shown.numbers).collect();
        (show.table)(&numbers)
    }

    /// All that it shows of some benchmarks of this kind.
    pub fn page(&self, shown: &[ShownBenchmark]) -> KindPage {
        let table = |show: &Show| {
            let mut table = Self::table(show, shown);
            match show.on_page {
                PageRows::None => return None,
                PageRows::All => {}
                PageRows::Lowest(column) => {
                    let rows = table.rows().len();
                    // A table without the column keeps its order.
                    let _ = table.sort_by(column, true);
                    table.truncate(PAGE_ROWS_MAX);
                    if rows > PAGE_ROWS_MAX {
                        table.notes.push(format!(
                            "The {PAGE_ROWS_MAX} of {rows} rows with the lowest {column}; kgfleet table --show {} has all.",
                            show.name
                        ));
                    }
                }
            }
            Some(PageTable { table, is_folded: show.is_folded })
        };
        let figures = |shown: &ShownBenchmark| {
            let drawn = |figure: &Figure| Drawn::of(|breadth| (figure.draw)(&*shown.numbers, breadth));
            (shown.name.clone(), self.figures.iter().map(drawn).collect())
        };
        KindPage {
            heading: self.heading,
            tables: self.shows.iter().filter_map(table).collect(),
            figures: shown.iter().map(figures).collect(),
        }
    }
}

/// The numbers as their kind knows them. What is of another kind is left out.
pub fn of_kind<'n, T: 'static>(numbers: &[&'n KindNumbers]) -> Vec<&'n T> {
    numbers.iter().filter_map(|numbers| numbers.downcast_ref()).collect()
}

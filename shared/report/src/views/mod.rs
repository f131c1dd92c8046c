//! The tables of [`Dialogues`](crate::Dialogues) that are asked for by their names: a file for each or for those that belong
//! together, and their lines in [`ALL`].

pub mod combined;
pub mod costs;
pub mod cut;
pub mod dialogues;
pub mod groups;
pub mod preferences;
pub mod scores;
pub mod statistics;

use crate::analysis::scheme::Scheme;
use crate::dialogues::Dialogues;
use crate::table::Table;
use crate::tables::sources;
use crate::views::groups::TaskGroup;

pub use scores::{Grid, Sort};

/// Every table. The size of the last one grows with the dialogues.
pub static ALL: [&View; 11] = [
    &scores::VIEW,
    &statistics::BY_MODEL,
    &statistics::VIEW,
    &preferences::VIEW,
    &preferences::TESTS,
    &combined::VIEW,
    &groups::VIEW,
    &costs::VIEW,
    &cut::VIEW,
    &sources::VIEW,
    &dialogues::VIEW,
];

/// Those that every workbook has.
pub static SUMMARIES: &[&View] = ALL.split_at(ALL.len() - 1).0;

/// A table of dialogues.
pub struct View {
    /// How it is asked for.
    pub name: &'static str,
    /// What it shows, for people.
    pub about: &'static str,
    pub table: fn(&Dialogues, &ViewOptions<'_>) -> Result<Table, ViewError>,
}

/// What a table is made by, besides dialogues. Each takes what it needs.
#[derive(Clone, Copy)]
pub struct ViewOptions<'a> {
    /// The categories of combined scores.
    pub scheme: &'a Scheme,
    /// Groups of tasks to compare; none for the usual ones.
    pub groups: &'a [TaskGroup],
    /// The score to compare groups on. Default: the headline of each task.
    pub score: Option<&'a str>,
    pub order: RowOrder<'a>,
    /// Whether it was asked for; otherwise it is one of a workbook, and options that mean another one do not fail.
    pub is_wanted: bool,
    /// Whether programs read it, so that its shape must not depend on the number of models.
    pub is_for_programs: bool,
}

/// The order of the rows of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowOrder<'a> {
    /// The column to sort by; `None` leaves rows as they are.
    pub column: Option<&'a str>,
    pub is_reversed: bool,
}

impl RowOrder<'_> {
    /// Sorts a table.
    ///
    /// # Errors
    /// There is no such column; or none is named, and rows as they are cannot be reversed.
    pub fn apply(self, table: &mut Table) -> Result<(), ViewError> {
        match self.column {
            None if !self.is_reversed => Ok(()),
            None => Err(ViewError::Reverse),
            Some(column) => table.sort_by(column, self.is_reversed).map_err(ViewError::Order),
        }
    }

    /// The table in this order.
    pub(crate) fn of(self, mut table: Table) -> Result<Table, ViewError> {
        self.apply(&mut table)?;
        Ok(table)
    }
}

/// Why a table cannot be made as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// There is nothing of this name to sort by.
    #[error("{0}")]
    Order(String),
    /// Its rows have no order that could be reversed.
    #[error("rows are reversed by a column only")]
    Reverse,
    /// No task is in the group of this name.
    #[error("group {0}: no task fits")]
    Group(String),
    /// No dialogue of the groups has the score of this name.
    #[error("no dialogue of these groups has a score `{0}`")]
    Score(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scheme::{bundled, named};
    use crate::dialogues::testing::matrix;

    #[test]
    fn every_table_can_be_made_and_has_a_name_and_a_title_of_its_own() {
        let all =
            matrix(&["m", "n"], &["RdfFriendCount-turtle-1", "RdfFriendCount-jsonld-1"], 3, |_, _, _| 0.5);
        let scheme = named(&bundled(), "sparql-b").unwrap();
        let options = ViewOptions {
            scheme: &scheme,
            groups: &[],
            score: None,
            order: RowOrder::default(),
            is_wanted: true,
            is_for_programs: false,
        };
        let mut known = Vec::new();
        for view in ALL {
            let table = (view.table)(&all, &options).unwrap();
            let names = (view.name, table.title.clone());
            assert!(known.iter().all(|(name, title)| *name != names.0 && *title != names.1), "{names:?}");
            assert!(
                !view.about.is_empty() && !view.about.ends_with('.'),
                "{}: the help has no full stop",
                view.name
            );
            known.push(names);
            let order = RowOrder { column: Some("no such column"), is_reversed: false };
            let unknown = (view.table)(&all, &ViewOptions { order, ..options }).unwrap_err();
            assert!(matches!(unknown, ViewError::Order(_)), "{}: {unknown}", view.name);
        }
    }
}

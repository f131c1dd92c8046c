//! The columns of tables that are written row by row.

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

//! What a kind of judged benchmarks has on the page of a report.

use crate::draw::Drawn;
use crate::table::Table;

/// All that a kind shows of some benchmarks.
pub struct KindPage {
    pub heading: &'static str,
    pub tables: Vec<PageTable>,
    /// For each benchmark its name and its figures.
    pub figures: Vec<(String, Vec<Drawn>)>,
}

/// A table of a page.
pub struct PageTable {
    pub table: Table,
    /// Whether it is shown only to those who open it.
    pub is_folded: bool,
}

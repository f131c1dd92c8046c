//! What kinds of judged benchmarks show of their own: tables and figures.

use maud::{Markup, html};

use super::plots::figure;
use super::tables::table;
use crate::kind_page::KindPage;
use crate::table::printable;

/// The address of a kind's section on the page.
pub(super) fn id(page: &KindPage) -> String {
    page.heading.to_lowercase().replace(' ', "-")
}

/// What it holds.
pub(super) fn show(page: &KindPage) -> Markup {
    html! {
        @for (number, shown) in page.tables.iter().enumerate() {
            @let title = printable(&shown.table.title);
            @if shown.is_folded { details { summary { (title) } (table(&shown.table)) } }
            @else { @if number > 0 { h3 { (title) } } (table(&shown.table)) }
        }
        @for (benchmark, figures) in &page.figures {
            @if page.figures.len() > 1 { h3 { (printable(benchmark)) } }
            @for drawn in figures { (figure(drawn)) }
        }
    }
}

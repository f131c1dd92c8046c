//! Tables as HTML. Each cell has its value beside its text, for the script to sort by.

use maud::{Markup, html};
use present::table::{Align, Cell, Table, TopPlace, printable};

/// A table with its notes.
pub fn table(table: &Table) -> Markup {
    linked(table, |_, _| None)
}

/// As [`table`], with links in cells: `link` gets the row and the column of each.
pub fn linked(table: &Table, link: impl Fn(usize, usize) -> Option<String>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(printable(&table.title)) {
            table.sortable {
                thead { tr {
                    @for heading in table.headings() {
                        th scope="col" .number[heading.align == Align::Right] {
                            // A column without a name holds marks or names: nobody sorts by it.
                            @if !heading.name.is_empty() { button type="button" { (printable(&heading.name)) } }
                        }
                    }
                } }
                tbody {
                    @for (number, row) in table.rows().iter().enumerate() {
                        tr { @for (column, (cell, heading)) in row.iter().zip(table.headings()).enumerate() {
                            (td(cell, heading.align, link(number, column)))
                        } }
                    }
                }
            }
        }
        @for note in &table.notes { p.note { (printable(note)) } }
    }
}

fn td(cell: &Cell, align: Align, link: Option<String>) -> Markup {
    let text = printable(&cell.shown());
    html! { td .number[align == Align::Right] data-v=[cell.value()] {
        @match (link, cell.place()) {
            (Some(link), _) => a href=(link) { (text) },
            (None, Some(TopPlace::First)) => b { (text) },
            (None, Some(TopPlace::Second)) => u { (text) },
            (None, None) => (text),
        }
    } }
}

//! Tables as HTML: the values that the script sorts by stand beside the words that people read.

use maud::{Markup, html};

use crate::table::{Align, Cell, Table, printable};

/// A table with its notes.
pub fn table(table: &Table) -> Markup {
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
                    @for row in table.rows() {
                        tr { @for (cell, heading) in row.iter().zip(table.headings()) { (td(cell, heading.align)) } }
                    }
                }
            }
        }
        @for note in &table.notes { p.note { (printable(note)) } }
    }
}

fn td(cell: &Cell, align: Align) -> Markup {
    html! { td .number[align == Align::Right] data-v=[cell.value()] { (printable(&cell.shown())) } }
}

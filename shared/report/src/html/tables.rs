//! Tables as HTML. Each cell has its value beside its text, for the script to sort by.

use maud::{Markup, html};

use crate::table::{Align, Cell, Table, TopPlace, printable};

/// A table whose columns that say the same in every row are a sentence below it.
pub fn folded(whole: Table) -> Markup {
    table(&whole.folded())
}

/// A table with its notes.
pub fn table(table: &Table) -> Markup {
    linked(table, |_, _| None)
}

/// What a script needs to know of a row whose table changes while it is shown.
#[derive(Clone, Debug, Default)]
pub struct LiveRow<'a> {
    /// Tells it from the others, whatever place it has.
    pub key: &'a str,
    /// Whether it is about the model of this name, so that filters of models act on it.
    pub is_model: bool,
    /// Words by which filters find it.
    pub states: String,
}

/// As [`table`], with links in cells: `link` gets the row and the column of each.
pub fn linked(table: &Table, link: impl Fn(usize, usize) -> Option<String>) -> Markup {
    rows(table, link, None::<fn(usize) -> LiveRow<'static>>)
}

/// As [`linked`], for tables that change while they are shown.
pub fn live<'a>(
    table: &Table,
    link: impl Fn(usize, usize) -> Option<String>,
    row: impl Fn(usize) -> LiveRow<'a>,
) -> Markup {
    rows(table, link, Some(row))
}

fn rows<'a>(
    table: &Table,
    link: impl Fn(usize, usize) -> Option<String>,
    row_of: Option<impl Fn(usize) -> LiveRow<'a>>,
) -> Markup {
    let is_live = row_of.is_some();
    html! {
        div.scroll tabindex="0" role="region" aria-label=(printable(&table.title)) {
            table.sortable {
                thead { tr {
                    @for heading in table.headings() {
                        // A column without a name holds marks or names: nobody sorts by it.
                        @if heading.name.is_empty() && is_live { td {} } @else {
                            th scope="col" .number[heading.align == Align::Right] {
                                @if !heading.name.is_empty() { button type="button" { (printable(&heading.name)) } }
                            }
                        }
                    }
                } }
                tbody {
                    @for (number, row) in table.rows().iter().enumerate() {
                        @let known = row_of.as_ref().map(|row_of| row_of(number));
                        @let key = known.as_ref().map(|row| printable(row.key));
                        @let model = key.as_ref().filter(|_| known.as_ref().is_some_and(|row| row.is_model));
                        @let states = known.as_ref().map(|row| &row.states).filter(|states| !states.is_empty());
                        @let place = known.as_ref().map(|_| number);
                        tr data-key=[key.as_ref()] data-place=[place] data-model=[model] data-states=[states] { @for (column, (cell, heading)) in row.iter().zip(table.headings()).enumerate() {
                            @let names_row = column == 0 && heading.align == Align::Left && !heading.name.is_empty();
                            (td(cell, heading.align, names_row, link(number, column)))
                        } }
                    }
                }
            }
        }
        @for note in &table.notes { p.note { (printable(note)) } }
    }
}

/// A cell; the first one of a row, where it is its name, stays in sight.
fn td(cell: &Cell, align: Align, names_row: bool, link: Option<String>) -> Markup {
    let text = printable(&cell.shown());
    let content = html! {
        @match (link, cell.place()) {
            (Some(link), _) => a href=(link) { (text) },
            (None, Some(TopPlace::First)) => b { (text) },
            (None, Some(TopPlace::Second)) => u { (text) },
            (None, None) => (text),
        }
    };
    html! {
        @if names_row { th scope="row" { (content) } }
        @else { td .number[align == Align::Right] data-v=[cell.value()] { (content) } }
    }
}

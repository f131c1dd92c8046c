//! Tables as HTML. Each cell has its value beside its text, for the script to sort by.

use maud::{Markup, html};

use crate::table::{Align, Cell, Heading, Table, TopPlace, printable};

/// A table whose columns that say the same in every row are a sentence below it.
pub fn folded(whole: Table) -> Markup {
    table(&whole.folded())
}

/// A table with its notes.
pub fn table(table: &Table) -> Markup {
    ShownTable::of(table).markup()
}

/// A table that changes while it is shown.
pub fn live<'a>(table: &Table, row: &dyn Fn(usize) -> LiveRow<'a>) -> Markup {
    ShownTable { live: Some(row), ..ShownTable::of(table) }.markup()
}

/// How a cell looks, beside its text.
#[derive(Default)]
pub struct CellLook {
    /// Where it leads.
    pub link: Option<String>,
    pub tip: Option<String>,
    /// Further CSS classes.
    pub class: String,
    /// Stands in place of its text.
    pub content: Option<Markup>,
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
    /// Where its first cell leads.
    pub link: Option<String>,
}

impl<'a> LiveRow<'a> {
    /// The row of a model.
    pub fn of_model(name: &'a str) -> Self {
        Self { key: name, is_model: true, ..Self::default() }
    }
}

/// A table, and all that a page shows of it beside its texts.
#[derive(Clone, Copy)]
pub struct ShownTable<'a, 'b> {
    pub table: &'a Table,
    /// A further CSS class.
    pub class: &'a str,
    /// What follows the name of a column in its heading.
    pub aside: &'a dyn Fn(usize) -> Markup,
    /// The look of the cell in a row and a column.
    pub look: &'a dyn Fn(usize, usize) -> CellLook,
    /// Of tables that change while they are shown.
    pub live: Option<&'a dyn Fn(usize) -> LiveRow<'b>>,
}

impl<'a, 'b> ShownTable<'a, 'b> {
    /// A table without more than its texts.
    pub fn of(table: &'a Table) -> Self {
        Self { table, class: "", aside: &|_| html! {}, look: &|_, _| CellLook::default(), live: None }
    }

    /// As HTML, with the notes below.
    pub fn markup(self) -> Markup {
        let table = self.table;
        html! {
            div.scroll tabindex="0" role="region" aria-label=(printable(&table.title)) {
                table class=(format!("sortable {}", self.class).trim_end()) {
                    thead { tr { @for (column, heading) in table.headings().iter().enumerate() { (self.head(column, heading)) } } }
                    tbody { @for (number, row) in table.rows().iter().enumerate() { (self.row(number, row)) } }
                }
            }
            @for note in &table.notes { p.note { (printable(note)) } }
        }
    }

    /// A column without a name holds marks or remarks: nobody sorts by it, and its heading says nothing.
    fn head(self, column: usize, heading: &Heading) -> Markup {
        html! {
            @if heading.name.is_empty() { td {} } @else {
                th scope="col" .number[heading.align == Align::Right] {
                    button type="button" { (printable(&heading.name)) ((self.aside)(column)) }
                }
            }
        }
    }

    fn row(self, number: usize, cells: &[Cell]) -> Markup {
        let live = self.live.map(|of| of(number));
        let key = live.as_ref().map(|live| printable(live.key));
        let model = key.as_ref().filter(|_| live.as_ref().is_some_and(|live| live.is_model));
        let states = live.as_ref().map(|live| &live.states).filter(|states| !states.is_empty());
        let place = live.as_ref().map(|_| number);
        html! {
            tr data-key=[key.as_ref()] data-place=[place] data-model=[model] data-states=[states] {
                @for (column, cell) in cells.iter().enumerate() {
                    @let look = (self.look)(number, column);
                    @let link = live.as_ref().and_then(|live| live.link.clone()).filter(|_| column == 0);
                    (self.cell(cell, column, CellLook { link: look.link.or(link), ..look }))
                }
            }
        }
    }

    /// A cell; the first one of a row, where it is its name, stays in sight.
    fn cell(self, cell: &Cell, column: usize, look: CellLook) -> Markup {
        let CellLook { link, tip, class, content } = look;
        let heading = &self.table.headings()[column];
        let is_number = heading.align == Align::Right;
        let class = [if is_number { "number" } else { "" }, &class].join(" ");
        let class = Some(class.trim()).filter(|class| !class.is_empty());
        let content = content.unwrap_or_else(|| {
            let text = printable(&cell.shown());
            match cell.place() {
                Some(TopPlace::First) => html! { b { (text) } },
                Some(TopPlace::Second) => html! { u { (text) } },
                None => html! { (text) },
            }
        });
        let content = link.map_or(content.clone(), |link| html! { a href=(link) { (content) } });
        html! {
            @if column == 0 && !is_number && !heading.name.is_empty() { th scope="row" { (content) } }
            @else { td class=[class] data-v=[cell.value()] title=[tip] { (content) } }
        }
    }
}

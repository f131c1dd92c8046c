//! The page from top to bottom: its size, filters, then the sections. A section is a row in [`ALL`] and a function that shows it.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::dialogues::{Dialogues, TaskId};
use crate::draw::{Breadth, Drawn};
use crate::figures::{self, Plot};
use crate::html::grid::{FORMATS, format_of};
use crate::html::tables::{folded, table};
use crate::html::{ReportPage, dialogues, grid, provenance, standing};
use crate::table::{Table, printable};
use crate::tables::sources;
use crate::views::costs::spending;
use crate::views::preferences::pairs;
use crate::views::{costs, cut, preferences};

pub fn head(title: &str, policy: &str, style: &str) -> Markup {
    html! {
        (DOCTYPE)
        (PreEscaped("<html lang=\"en\">"))
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy);
            meta name="viewport" content="width=device-width, initial-scale=1";
            title { (printable(title)) }
            style { (PreEscaped(style)) }
        }
        (PreEscaped("<body>"))
    }
}

pub fn body(report: &ReportPage<'_>) -> Markup {
    let all = report.dialogues;
    let shown = shown(report);
    html! {
        header {
            h1 { (printable(report.title)) }
            nav aria-label="Sections" { @for (id, title, _) in &shown { a href={ "#" (id) } { (title) } " " } }
            @if !all.is_empty() { (provenance::summary(all)) }
            @for line in cut::told(all) { p.warning { (printable(&line)) } }
        }
        main {
            @if !all.is_empty() { (filters(all)) }
            @for (id, title, content) in &shown { section id=(id) { h2 { (title) } (content) } }
        }
        footer { p.note { "Made by kgfleet " (env!("CARGO_PKG_VERSION")) "." } }
    }
}

fn filters(all: &Dialogues) -> Markup {
    let mut families: Vec<&str> = all.columns.iter().map(|column| column.family.as_str()).collect();
    families.sort_unstable();
    families.dedup();
    let formats = FORMATS
        .into_iter()
        .filter(|format| all.tasks.iter().any(|task| format_of(&task.label) == Some(format)));
    html! {
        form #filters aria-label="Filters" {
            label { "Family " select name="family" { option value="" { "all" } @for family in families { option value=(printable(family)) { (printable(family)) } } } }
            label { "Format " select name="format" { option value="" { "all" } @for format in formats { option value=(format) { (format) } } } }
            label { "Task " input name="task" type="search" placeholder="part of a name"; }
            label { "Model " input name="model" type="search" placeholder="part of a name"; }
            button type="reset" { "Show all" }
            p #fits .note role="status" {}
        }
    }
}

/// A section of a report: its address on the page, its title, and what it shows; `None` if there is nothing.
type Section = (&'static str, &'static str, fn(&ReportPage<'_>) -> Option<Markup>);

/// The sections that there are, with address, title and content: those of kinds first, then those of dialogues.
fn shown(report: &ReportPage<'_>) -> Vec<(String, &'static str, Markup)> {
    let of_kinds = report.judged.iter().map(|page| (id(page), page.heading, judged(page)));
    let shown = |&(id, title, show): &Section| Some((id.to_owned(), title, show(report)?));
    of_kinds.chain(ALL.iter().filter_map(shown)).collect()
}

/// All sections, those first that answer most.
const ALL: [Section; 9] = [
    ("models", "Models", standing::show),
    ("scores", "Mean scores", grid::show),
    ("plots", "Plots", plots),
    ("tests", "Turtle or JSON-LD", tests_of_formats),
    ("cut", "Cut and empty answers", cut_answers),
    ("costs", "Cost", costs_of_models),
    ("configuration", "Configuration", configurations),
    ("dialogues", "Dialogues", dialogues::show),
    ("provenance", "Provenance", provenance::show),
];

fn tests_of_formats(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    (!pairs(all).is_empty()).then(|| {
        html! {
            (table(&preferences::by_model(all)))
            details { summary { "The tests behind it" } (folded(preferences::tests(all))) }
        }
    })
}

/// Only where there are some.
fn cut_answers(report: &ReportPage<'_>) -> Option<Markup> {
    let found = cut::table(report.dialogues, false);
    (!found.rows().is_empty()).then(|| folded(found))
}

/// Only where something has a price: of the others there is nothing to say.
fn costs_of_models(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    let has_cost = (0..all.columns.len()).any(|column| spending(all, column).is_some());
    has_cost.then(|| folded(costs::table(all)))
}

fn configurations(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    let is_told = (0..all.columns.len()).any(|column| all.setup(column).is_some());
    is_told.then(|| folded(sources::configuration(all)))
}

/// The address of a kind's section on the page.
fn id(page: &KindPage) -> String {
    page.heading.to_lowercase().replace(' ', "-")
}

/// What it holds.
fn judged(page: &KindPage) -> Markup {
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

/// Every figure that the tables do not show already.
fn plots(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    let shown = |plot: &&Plot| {
        let draw = |breadth| (plot.draw)(all, report.compass, breadth);
        let pairs = draw(Breadth::Wide).into_iter().zip(draw(Breadth::Narrow));
        let (is_open, heading) = (plot.is_open, plot.heading);
        pairs.map(move |(wide, narrow)| {
            let (task, drawn) = (wide.task, Drawn { wide: wide.svg, narrow: narrow.svg });
            if is_open { figure(&drawn) } else { folded_plot(all, heading, task, &drawn) }
        })
    };
    let figures: Vec<Markup> = figures::ALL.iter().flat_map(shown).collect();
    (!figures.is_empty()).then(|| html! { @for figure in &figures { (figure) } })
}

fn folded_plot(all: &Dialogues, heading: &str, task: Option<TaskId>, drawn: &Drawn) -> Markup {
    match task.map(|task| &all.tasks[task]) {
        None => html! { details { summary { (heading) } (figure(drawn)) } },
        Some(task) => html! {
            details.task data-task=(printable(&task.label)) data-format=[format_of(&task.label)] {
                summary { (printable(&task.label)) " " span.note { (printable(&task.headline)) } } (figure(drawn))
            }
        },
    }
}

/// A figure, as wide as the page has room for it.
fn figure(drawn: &Drawn) -> Markup {
    html! { div.figure { div.wide { (PreEscaped(drawn.wide.inline())) } div.narrow { (PreEscaped(drawn.narrow.inline())) } } }
}

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

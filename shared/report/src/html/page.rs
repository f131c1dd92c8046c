//! The page from top to bottom: its size, filters, then the sections. A section is a row in [`ALL`] and a function that shows it;
//! those without a file of their own are here.

use std::io::{self, Write};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::dialogues::{Dialogues, TaskId};
use crate::draw::{Breadth, Drawn};
use crate::figures::{self, Plot};
use crate::html::tables::{CellLook, ShownTable, folded, table};
use crate::html::{ReportPage, grid, standing};
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

/// Writes the page from its top to its bottom. Its sections are large, so none is copied.
pub fn write_body(report: &ReportPage<'_>, out: &mut impl Write) -> io::Result<()> {
    let all = report.dialogues;
    let shown = shown(report);
    let top = html! {
        header {
            h1 { (printable(report.title)) }
            nav aria-label="Sections" { @for (id, title, _) in &shown { a href={ "#" (id) } { (title) } " " } }
            @if !all.is_empty() { (size(all)) }
            @for line in cut::told(all) { p.warning { (printable(&line)) } }
        }
        (PreEscaped("<main>"))
        @if !all.is_empty() { (filters(all)) }
    };
    out.write_all(top.into_string().as_bytes())?;
    for (id, title, content) in shown {
        write!(out, "<section id=\"{id}\"><h2>{title}</h2>")?;
        out.write_all(content.into_string().as_bytes())?;
        write!(out, "</section>")?;
    }
    let bottom = html! { footer { p.note { "Made by kgfleet " (env!("CARGO_PKG_VERSION")) "." } } };
    write!(out, "</main>{}", bottom.into_string())
}

/// The size of what was read, and how many remarks there are on it.
fn size(all: &Dialogues) -> Markup {
    html! {
        p.note { (all.len()) " dialogues, " (all.columns.len()) " models, " (all.tasks.len()) " tasks. "
            @match sources::remarks(all).len() {
                0 => {},
                1 => a.remarks href="#provenance" { "One thing to know about these numbers" },
                count => a.remarks href="#provenance" { (count) " things to know about these numbers" },
            }
        }
    }
}

/// Formats of graphs that labels of tasks name.
const FORMATS: [&str; 4] = ["turtle", "jsonld", "xml", "nt"];

fn filters(all: &Dialogues) -> Markup {
    let mut families: Vec<&str> = all.columns.iter().map(|column| column.family.as_str()).collect();
    families.sort_unstable();
    families.dedup();
    let is_named =
        |format: &&str| all.tasks.iter().any(|task| task.label.split('-').any(|word| word == *format));
    let formats = FORMATS.into_iter().filter(is_named);
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
    ("dialogues", "Dialogues", reading),
    ("provenance", "Provenance", provenance),
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
    let figures: String = figures::ALL.iter().flat_map(shown).map(Markup::into_string).collect();
    (!figures.is_empty()).then_some(PreEscaped(figures))
}

fn folded_plot(all: &Dialogues, heading: &str, task: Option<TaskId>, drawn: &Drawn) -> Markup {
    match task.map(|task| &all.tasks[task]) {
        None => html! { details { summary { (heading) } (figure(drawn)) } },
        Some(task) => html! {
            details.task data-task=(printable(&task.label)) {
                summary { (printable(&task.label)) " " span.note { (printable(&task.headline)) } } (figure(drawn))
            }
        },
    }
}

/// The columns of the table of dialogues, each with the key by which the address names it and whether it holds numbers.
const COLUMNS: [(&str, &str, bool); 7] = [
    ("model", "model", false),
    ("task", "task", false),
    ("case", "case", false),
    ("number", "no.", true),
    ("score", "score", true),
    ("rounds", "rounds", true),
    ("reason", "why not scored", false),
];

/// The table of dialogues, with search and order, and the place beside it where one is read. The script fills both.
fn reading(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    (!all.is_empty()).then(|| {
        html! {
            p #none .note { "Reading dialogues needs JavaScript." }
            form #choose aria-label="Choice of dialogues" hidden {
                label { "Model " select name="column" { option value="" { "all" }
                    @for (id, heading) in all.headings().iter().enumerate() { option value=(id) { (printable(heading)) } } } }
                label { "Task " select name="label" { option value="" { "all" }
                    @for (id, task) in all.tasks.iter().enumerate() { option value=(id) { (printable(&task.label)) } } } }
                label { "Show " select name="only" {
                    option value="" { "all" } option value="failed" { "without a score" }
                    option value="short" { "below full marks" } option value="full" { "full marks" } } }
                label { "Search " input name="words" type="search" placeholder="case, reason, name"; }
                label { input name="texts" type="checkbox" value="on"; " in texts, too" }
            }
            p #found .note role="status" {}
            div #reading hidden {
                div #list tabindex="0" role="region" aria-label="Table of dialogues" {
                    table { thead { tr { @for (key, name, is_number) in COLUMNS {
                        th scope="col" data-key=(key) .number[is_number] { button type="button" { (name) } }
                    } } } tbody {} }
                }
                article #viewer tabindex="-1" aria-label="Dialogue" hidden {}
            }
            p #keys .note hidden { kbd { "Enter" } " opens, " kbd { "j" } " and " kbd { "k" } " or arrows go on and back, " kbd { "Esc" } " closes." }
        }
    })
}

/// Sources that are shown without being asked for.
const OPEN_MAX: usize = 8;

/// Where the numbers come from, and what has to be known about them.
fn provenance(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    if all.is_empty() && !report.judged.is_empty() {
        return None;
    }
    let (remarks, mut table) = (sources::remarks(all), sources::table(all));
    table.notes.clear();
    Some(html! {
        @if all.is_empty() { p.warning { "There are no dialogues." } }
        @if !remarks.is_empty() { ul.warnings { @for remark in &remarks { li { (printable(remark)) } } } }
        @if !all.sources.is_empty() {
            details open[all.sources.len() <= OPEN_MAX] {
                summary { "Sources: " (all.sources.len()) }
                (ShownTable { look: &|row, column| shortened(&table, row, column), ..ShownTable::of(&table) }.markup())
            }
        }
    })
}

/// What is long: the version of the scoring rules without its limits and switches, which are its tooltip, and the beginning of a
/// hash.
fn shortened(table: &Table, row: usize, column: usize) -> CellLook {
    let whole = printable(&table.rows()[row][column].shown());
    let beginning = match table.headings()[column].name.as_str() {
        "scored by" => whole.split_once(" {").map(|(version, _)| format!("{version} …")),
        "configuration" => whole.get(..HASH_DIGITS).map(str::to_owned),
        _ => None,
    };
    let shown = |beginning: String| CellLook {
        tip: Some(whole),
        content: Some(html! { (beginning) }),
        ..CellLook::default()
    };
    beginning.map(shown).unwrap_or_default()
}

/// Digits of a hash that tell configurations apart.
const HASH_DIGITS: usize = 12;

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

//! The page from top to bottom: its size, filters, then the sections.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::ReportPage;
use super::grid::{FORMATS, format_of};
use super::{provenance, sections};
use crate::dialogues::Dialogues;
use crate::table::printable;
use crate::views::cut;

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
    let shown = sections::shown(report);
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

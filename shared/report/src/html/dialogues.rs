//! The table of dialogues, with search and order, and the place beside it where one is read. The script fills both.

use maud::{Markup, html};

use super::ReportPage;
use crate::table::printable;

/// The columns of the table, each with the key by which the address names it and whether it holds numbers.
const COLUMNS: [(&str, &str, bool); 7] = [
    ("model", "model", false),
    ("task", "task", false),
    ("case", "case", false),
    ("number", "no.", true),
    ("score", "score", true),
    ("rounds", "rounds", true),
    ("reason", "why not scored", false),
];

pub(super) fn show(report: &ReportPage<'_>) -> Option<Markup> {
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

//! The list of dialogues, with search and order, and the place where one is read. The script fills both.

use maud::{Markup, html};
use present::table::printable;

use super::ReportPage;

pub(super) fn show(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    (!all.is_empty()).then(|| {
        html! {
            p #none .note { "Reading dialogues needs JavaScript." }
            form #choose aria-label="Choice of dialogues" hidden {
                label { "Model " select name="column" { option value="" { "all" }
                    @for (id, heading) in all.headings().iter().enumerate() { option value=(id) { (printable(heading)) } } } }
                label { "Task " select name="task" { option value="" { "all" }
                    @for (id, task) in all.tasks.iter().enumerate() { option value=(id) { (printable(&task.label)) } } } }
                label { "Show " select name="only" {
                    option value="" { "all" } option value="failed" { "only without a score" } option value="short" { "only below 1" } } }
                label { "Order " select name="order" {
                    option value="" { "as asked" } option value="worst" { "worst first" } option value="best" { "best first" } } }
                label { "Search " input name="words" type="search" placeholder="case, reason, name"; }
                label { input name="texts" type="checkbox"; " in texts, too" }
            }
            p #found .note role="status" {}
            div #list {} article #viewer tabindex="-1" {}
        }
    })
}

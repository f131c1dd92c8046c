//! Every figure that the tables do not show already.

use maud::{Markup, PreEscaped, html};
use present::figure::Svg;
use present::table::printable;

use super::ReportPage;
use super::grid::format_of;
use crate::analysis::cells::totals;
use crate::figures;

pub(super) fn show(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    (!all.is_empty()).then(|| {
        html! {
            (figure(&figures::compasses(all, report.compass)))
            details { summary { "First answer and best answer" } (figure(&figures::gains(all))) }
            @if totals(all).iter().any(|total| total.completion_tokens.is_some()) {
                details { summary { "Score and tokens written" } (figure(&figures::tokens(all))) }
            }
            details { summary { "Score and time" } (figure(&figures::time(all))) }
            @if all.columns.iter().any(|column| column.size.is_some()) {
                details { summary { "Score and size" } (figure(&figures::sizes(all))) }
            }
            @for (id, task) in all.tasks.iter().enumerate() {
                details.task data-task=(printable(&task.label)) data-format=[format_of(&task.label)] {
                    summary { (printable(&task.label)) " " span.note { (printable(&task.headline)) } } (figure(&figures::of_task(all, id)))
                }
            }
        }
    })
}

/// A figure, which scrolls by itself where it is wider than the page.
pub(super) fn figure(svg: &Svg) -> Markup {
    html! { div.scroll.figure tabindex="0" role="region" aria-label=(printable(svg.title())) { (PreEscaped(svg.inline())) } }
}

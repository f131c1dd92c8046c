//! Every figure that the tables do not show already.

use maud::{Markup, PreEscaped, html};
use present::figure::Svg;
use present::table::printable;

use super::ReportPage;
use super::grid::format_of;
use crate::dialogues::Dialogues;
use crate::figures;
use crate::plot::{DrawnPlot, PagePlace, Plot};

pub(super) fn show(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    let places = figures::ALL.into_iter().map(|plot| (plot, (plot.place)(all)));
    (!all.is_empty()).then(|| {
        html! {
            @for (plot, place) in places.filter(|(_, place)| *place != PagePlace::Nowhere) {
                @for drawn in (plot.draw)(all, report.compass) {
                    @if place == PagePlace::Open { (figure(&drawn.svg)) } @else { (folded(all, plot, &drawn)) }
                }
            }
        }
    })
}

fn folded(all: &Dialogues, plot: &Plot, drawn: &DrawnPlot) -> Markup {
    match drawn.task.map(|task| &all.tasks[task]) {
        None => html! { details { summary { (plot.heading) } (figure(&drawn.svg)) } },
        Some(task) => html! {
            details.task data-task=(printable(&task.label)) data-format=[format_of(&task.label)] {
                summary { (printable(&task.label)) " " span.note { (printable(&task.headline)) } } (figure(&drawn.svg))
            }
        },
    }
}

/// A figure, which scrolls by itself where it is wider than the page.
pub(super) fn figure(svg: &Svg) -> Markup {
    html! { div.scroll.figure tabindex="0" role="region" aria-label=(printable(svg.title())) { (PreEscaped(svg.inline())) } }
}

//! Every figure that the tables do not show already.

use maud::{Markup, PreEscaped, html};

use super::ReportPage;
use super::grid::format_of;
use crate::dialogues::{Dialogues, TaskId};
use crate::draw::{Breadth, Drawn};
use crate::figures;
use crate::plot::{PagePlace, Plot};
use crate::table::printable;

pub(super) fn show(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    let places = figures::ALL.into_iter().map(|plot| (plot, (plot.place)(all)));
    let shown = places.filter(|(_, place)| *place != PagePlace::Nowhere);
    let figures: Vec<Markup> = shown
        .flat_map(|(plot, place)| drawn(report, plot).into_iter().map(move |drawn| (plot, place, drawn)))
        .map(|(plot, place, (task, drawn))| match place {
            PagePlace::Open => figure(&drawn),
            _ => folded(all, plot, task, &drawn),
        })
        .collect();
    (!figures.is_empty()).then(|| html! { @for figure in &figures { (figure) } })
}

/// The drawings of a plot, each with the task that it is about.
fn drawn(report: &ReportPage<'_>, plot: &Plot) -> Vec<(Option<TaskId>, Drawn)> {
    let draw = |breadth| (plot.draw)(report.dialogues, report.compass, breadth);
    let pairs = draw(Breadth::Wide).into_iter().zip(draw(Breadth::Narrow));
    pairs.map(|(wide, narrow)| (wide.task, Drawn { wide: wide.svg, narrow: narrow.svg })).collect()
}

fn folded(all: &Dialogues, plot: &Plot, task: Option<TaskId>, drawn: &Drawn) -> Markup {
    match task.map(|task| &all.tasks[task]) {
        None => html! { details { summary { (plot.heading) } (figure(drawn)) } },
        Some(task) => html! {
            details.task data-task=(printable(&task.label)) data-format=[format_of(&task.label)] {
                summary { (printable(&task.label)) " " span.note { (printable(&task.headline)) } } (figure(drawn))
            }
        },
    }
}

/// A figure, as wide as the page has room for it.
pub(super) fn figure(drawn: &Drawn) -> Markup {
    html! { div.figure { div.wide { (PreEscaped(drawn.wide.inline())) } div.narrow { (PreEscaped(drawn.narrow.inline())) } } }
}

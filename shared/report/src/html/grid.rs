//! Models × tasks as a table of colours: the mean of every pair, how much of its plan is done, and the way to its dialogues.

use maud::{Markup, html};

use crate::analysis::{cells, placing};
use crate::dialogues::Dialogues;
use crate::html::ReportPage;
use crate::html::tables::folded;
use crate::summaries::CellStatistics;
use crate::table::printable;
use crate::views::statistics;

/// Formats of graphs that labels of tasks name.
pub(in crate::html) const FORMATS: [&str; 4] = ["turtle", "jsonld", "xml", "nt"];

/// Number of colour steps, and of steps in which a square is filled. Each step is a CSS class, because the content
/// security policy forbids styles on elements.
const COLOURS: f64 = 20.0;
const FILLS: f64 = 10.0;

/// A task.
pub struct GridHead<'a> {
    pub label: &'a str,
    /// The name of its score; empty if it has none.
    pub title: &'a str,
}

/// A model.
pub struct GridLine<'a> {
    pub name: &'a str,
    /// The mean of its tasks.
    pub mean: Option<f64>,
    /// One square per task; `None` if nothing is planned.
    pub squares: Vec<Option<Square>>,
}

/// A model on a task.
#[derive(Default)]
pub struct Square {
    pub mean: Option<f64>,
    /// Shown if there is no mean.
    pub instead: Option<String>,
    pub tip: Option<String>,
    /// Whether some of its dialogues have no score.
    pub gap: bool,
    /// Whether the number has no colour, because a high value is not always good.
    pub plain: bool,
    /// The share of the plan that is done, if it can change.
    pub filled: Option<f64>,
    /// Address of its dialogues.
    pub link: Option<String>,
}

/// The grid, in the order given; `mean` is the heading of the models' own numbers.
pub fn grid(title: &str, mean: &str, tasks: &[GridHead<'_>], models: &[GridLine<'_>]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(printable(title)) { table.sortable.grid {
            thead { tr {
                th scope="col" { button type="button" { "model" } }
                th.number scope="col" { button type="button" { (mean) } }
                @for task in tasks {
                    th.number scope="col" data-task=(printable(task.label)) data-format=[format_of(task.label)] {
                        button type="button" { (printable(task.label))
                            @if !task.title.is_empty() { " " span.score { (printable(task.title)) } } }
                    }
                }
            } }
            tbody { @for model in models {
                tr {
                    th scope="row" { (printable(model.name)) }
                    td.number data-v=[model.mean] { (shown(model.mean)) }
                    @for square in &model.squares { (place(square.as_ref())) }
                }
            } }
        } }
    }
}

fn place(square: Option<&Square>) -> Markup {
    let Some(square) = square else { return html! { td.number { "" } } };
    let mut class = "number".to_owned();
    if let Some(mean) = square.mean.filter(|_| !square.plain) {
        class.push_str(&format!(" h{}", (mean.clamp(0.0, 1.0) * COLOURS).round()));
    }
    if let Some(filled) = square.filled.filter(|filled| *filled < 1.0) {
        class.push_str(&format!(" f{}", (filled.clamp(0.0, 1.0) * FILLS).floor()));
    }
    let text = match (&square.instead, square.mean) {
        (Some(words), None) => printable(words),
        _ => shown(square.mean),
    };
    html! {
        td class=(class) data-v=[square.mean] title=[&square.tip] {
            @match &square.link { Some(link) => a href=(link) { (text) }, None => (text) }
            @if square.gap { span.gap title="some dialogues have no score" { "*" } }
        }
    }
}

fn shown(mean: Option<f64>) -> String {
    mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.3}"))
}

pub(in crate::html) fn format_of(label: &str) -> Option<&'static str> {
    FORMATS.into_iter().find(|format| label.split('-').any(|word| word == *format))
}

pub(super) fn show(report: &ReportPage<'_>) -> Option<Markup> {
    (!report.dialogues.is_empty()).then(|| {
        html! {
            p.note { "A number leads to its dialogues; * marks numbers without some of them, because they have no score. Below each \
                      task stands the name of its score." }
            (squares(report.dialogues))
            details { summary { "Every model on every task, in numbers" } (folded(statistics::by_task(report.dialogues))) }
        }
    })
}

/// The best model first; every number is a link.
fn squares(all: &Dialogues) -> Markup {
    let headings = all.headings();
    let cells = cells::statistics(all);
    let totals = cells::totals(all);
    let mut by_place = vec![None; all.tasks.len() * all.columns.len()];
    for cell in cells {
        by_place[cell.column * all.tasks.len() + cell.task] = Some(cell);
    }
    let line = |column: usize| GridLine {
        name: &headings[column],
        mean: totals[column].mean,
        squares: by_place[column * all.tasks.len()..]
            .iter()
            .take(all.tasks.len())
            .map(|cell| cell.map(square))
            .collect(),
    };
    let lines: Vec<GridLine<'_>> = placing::by_mean(all).iter().map(|place| line(place.column)).collect();
    let heads: Vec<GridHead<'_>> =
        all.tasks.iter().map(|task| GridHead { label: &task.label, title: &task.headline }).collect();
    grid("Mean scores", "mean of tasks", &heads, &lines)
}

fn square(cell: &CellStatistics) -> Square {
    let tip = cell.interval.map(|interval| {
        format!(
            "{:.3} to {:.3}, n {} of {}",
            interval.low,
            interval.high,
            cell.summary.map_or(0, |s| s.n),
            cell.planned
        )
    });
    Square {
        mean: cell.summary.map(|summary| summary.mean),
        tip,
        gap: cell.unscored_share() > 0.0,
        link: Some(format!("#dialogues?column={}&label={}", cell.column, cell.task)),
        ..Square::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_shows_its_mean_and_how_full_it_is() {
        let half = Square { mean: Some(0.5), filled: Some(0.35), gap: true, ..Square::default() };
        let none = Square { instead: Some("0/20".to_owned()), filled: Some(0.0), ..Square::default() };
        let whole = Square {
            mean: Some(2.0),
            filled: Some(1.0),
            link: Some("x?a=1&b=2".to_owned()),
            ..Square::default()
        };
        let line =
            GridLine { name: "<m>", mean: None, squares: vec![Some(half), Some(none), Some(whole), None] };
        let heads = [GridHead { label: "RdfFriendCount-nt-1", title: "f1" }];
        let page = grid("Means", "mean", &heads, &[line]).into_string();
        for part in [
            "class=\"number h10 f3\"",
            "class=\"number f0\" ",
            ">0/20<",
            "class=\"number h20\"",
            "href=\"x?a=1&amp;b=2\"",
            "&lt;m&gt;",
            "data-format=\"nt\"",
            "<span class=\"score\">f1</span>",
        ] {
            assert!(page.contains(part) || page.contains(part.trim_end()), "{part} in {page}");
        }
    }
}

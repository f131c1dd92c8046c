//! Models × tasks as a table of colours: the mean of every pair, how much of its plan is done, and the way to its dialogues.

use maud::{Markup, html};

use crate::analysis::cells::CellStatistics;
use crate::analysis::{cells, placing};
use crate::dialogues::Dialogues;
use crate::html::ReportPage;
use crate::html::tables::{CellLook, ShownTable, folded};
use crate::table::{Cell, Table, printable};
use crate::views::statistics;

/// Number of colour steps, and of steps in which a square is filled. Each step is a CSS class, because the content
/// security policy forbids styles on elements.
const COLOURS: f64 = 20.0;
const FILLS: f64 = 10.0;

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

impl Square {
    fn cell(&self) -> Cell {
        let gap = if self.gap { "*" } else { "" };
        match (self.mean, &self.instead) {
            (Some(mean), _) => Cell::Told(format!("{mean:.3}{gap}"), Some(mean)),
            (None, Some(words)) => Cell::from(words.as_str()),
            (None, None) => Cell::Empty,
        }
    }

    fn look(&self) -> CellLook {
        let colour = self.mean.filter(|_| !self.plain).map(|mean| ('h', mean.clamp(0.0, 1.0) * COLOURS));
        let filled = self.filled.filter(|filled| *filled < 1.0);
        let filled = filled.map(|filled| ('f', (filled.clamp(0.0, 1.0) * FILLS).floor()));
        let steps = [colour, filled].into_iter().flatten().map(|(of, step)| format!("{of}{}", step.round()));
        let class = steps.collect::<Vec<_>>().join(" ");
        CellLook { link: self.link.clone(), tip: self.tip.clone(), class, content: None }
    }
}

/// The grid, in the order given, of tasks with the names of their scores; `mean` is the heading of the models' own numbers.
pub fn grid(mean: &str, tasks: &[(&str, &str)], models: &[GridLine<'_>]) -> Markup {
    let labels = tasks.iter().map(|(label, _)| *label);
    let mut table = Table::default().left(["model"]).right([mean]).right(labels).titled("Mean scores");
    for GridLine { name, mean, squares } in models {
        let squares = squares.iter().map(|square| square.as_ref().map_or(Cell::from(""), Square::cell));
        table.row([Cell::from(*name), Cell::number(*mean, 3)].into_iter().chain(squares));
    }
    let of_task = |column: usize| column.checked_sub(2);
    let score = |column| of_task(column).map(|task| tasks[task].1).filter(|score| !score.is_empty());
    let square = |row: usize, column| of_task(column).and_then(|task| models[row].squares[task].as_ref());
    ShownTable {
        class: "grid",
        aside: &|column| html! { @if let Some(score) = score(column) { " " span.score { (printable(score)) } } },
        look: &|row, column| square(row, column).map(Square::look).unwrap_or_default(),
        ..ShownTable::of(&table)
    }
    .markup()
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
    let (headings, totals) = (all.headings(), cells::totals(all));
    let mut by_place = vec![None; all.tasks.len() * all.columns.len()];
    for cell in cells::statistics(all) {
        by_place[cell.column * all.tasks.len() + cell.task] = Some(cell);
    }
    let line = |column: usize| {
        let of_model = &by_place[column * all.tasks.len()..][..all.tasks.len()];
        let squares = of_model.iter().map(|cell| cell.map(square)).collect();
        GridLine { name: &headings[column], mean: totals[column].mean, squares }
    };
    let lines: Vec<GridLine<'_>> = placing::by_mean(all).iter().map(|place| line(place.column)).collect();
    let tasks: Vec<(&str, &str)> = all.tasks.iter().map(|task| (&*task.label, &*task.headline)).collect();
    grid("mean of tasks", &tasks, &lines)
}

fn square(cell: &CellStatistics) -> Square {
    let tip = cell.interval.map(|interval| {
        let n = cell.summary.map_or(0, |summary| summary.n);
        format!("{:.3} to {:.3}, n {n} of {}", interval.low, interval.high, cell.planned)
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
        let link = Some("x?a=1&b=2".to_owned());
        let whole = Square { mean: Some(2.0), filled: Some(1.0), link, ..Square::default() };
        let squares = vec![Some(half), Some(none), Some(whole), None];
        let page = grid(
            "mean",
            &[("a", "f1"), ("b", ""), ("c", ""), ("d", "")],
            &[GridLine { name: "<m>", mean: None, squares }],
        );
        let page = page.into_string();
        for part in [
            "class=\"number h10 f3\" data-v=\"0.5\">0.500*<",
            "class=\"number f0\">0/20<",
            "class=\"number h20\" data-v=\"2\"><a href=\"x?a=1&amp;b=2\">2.000<",
            "&lt;m&gt;",
            ">a <span class=\"score\">f1</span>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}

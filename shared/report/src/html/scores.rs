//! Models × tasks: every mean, and the way to its dialogues.

use maud::{Markup, html};

use super::ReportPage;
use super::grid::{self, GridHead, GridLine, Square};
use super::tables::folded;
use crate::analysis::{cells, placing};
use crate::dialogues::Dialogues;
use crate::summaries::CellStatistics;
use crate::views::statistics;

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
    grid::grid("Mean scores", "mean of tasks", &heads, &lines)
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

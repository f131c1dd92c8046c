//! Box plots of one task over models, with single values and mean, as in the articles on LLM-KG-Bench, but horizontal,
//! so that names are readable. A box of zeros and ones says nothing: where a task has no other values, bars show the intervals of
//! the means.

use domain::Mean;
use domain::control::Better;
use domain::ranking::Contender;
use domain::seed::SplitMix64;

use super::{colours, mixed};
use crate::analysis::cells::CellStatistics;
use crate::analysis::cells::statistics;
use crate::analysis::placing::placed;
use crate::dialogues::{ColumnId, Dialogues, ReportedTask, TaskId};
use crate::draw::bars::Rows;
use crate::draw::scale::{Scale, around, short, ticks};
use crate::draw::svg::{Anchor, Breadth, Svg};
use crate::figures::{DrawnPlot, Plot};
use crate::stats::{Interval, SampleSummary};

/// See [`of_task`].
pub static PLOT: Plot = Plot {
    heading: "Task",
    is_open: false,
    draw: |all, _, breadth| {
        let of = |(id, task): (TaskId, &ReportedTask)| DrawnPlot {
            file: format!("task_{}", task.label),
            task: Some(id),
            svg: of_task(all, id, breadth),
        };
        let has_values = |(id, _): &(TaskId, &ReportedTask)| {
            statistics(all).iter().any(|cell| cell.task == *id && cell.summary.is_some())
        };
        all.tasks.iter().enumerate().filter(has_values).map(of).collect()
    },
};

const ROW: f64 = 22.0;
const TOP: f64 = 58.0;
const NUMBERS: f64 = 110.0;
/// Length of the strokes of a cross.
const CROSS: u8 = 5;

/// The box plot of a task, the best model first. Models without a value are left out.
fn of_task(all: &Dialogues, task: TaskId, breadth: Breadth) -> Svg {
    let headings = all.headings();
    let colours = colours(all);
    let mut rows: Vec<(ColumnId, Vec<f64>, SampleSummary)> = (0..all.columns.len())
        .filter_map(|column| {
            let values: Vec<f64> = all.of(column, task).filter_map(|dialogue| dialogue.headline).collect();
            let summary = SampleSummary::of(values.iter().copied())?;
            Some((column, values, summary))
        })
        .collect();
    let contender = |column: ColumnId| {
        let found = rows.iter().find(|row| row.0 == column).map(|row| row.2);
        let (value, covered) = (found.map(|found| found.mean), found.map_or(0, |found| found.n as u64));
        Contender::of(Mean { value, covered, planned: all.planned(column, task) }, 0.0, 1.0)
    };
    let order = placed(all, contender, Better::Higher);
    rows.sort_by_key(|row| order.iter().position(|place| place.column == row.0));
    let intervals: Vec<&CellStatistics> = statistics(all).iter().filter(|cell| cell.task == task).collect();
    let name = &all.tasks[task];
    let places = Rows::new(breadth, (TOP, ROW, NUMBERS), rows.iter().map(|row| headings[row.0].as_str()));
    let bottom = places.bottom(rows.len());
    let mut svg = Svg::new(breadth.width(), bottom, &format!("{} · {}", name.label, name.headline));
    let range = around(rows.iter().flat_map(|row| [row.2.min, row.2.max]));
    let x = Scale::linear(range, places.ends);
    for tick in ticks(range) {
        svg.line((x.at(tick), TOP - 6.0), (x.at(tick), bottom), "faint");
        svg.text((x.at(tick), TOP - 12.0), Anchor::Middle, 11.0, "soft", &short(tick));
    }
    if breadth == Breadth::Wide {
        svg.text((breadth.width() - 12.0, TOP - 12.0), Anchor::End, 11.0, "soft", "mean (n)");
    }
    let is_binary = rows.iter().flat_map(|row| &row.1).all(|value| *value == 0.0 || *value == 1.0);
    for (number, (column, values, summary)) in rows.iter().enumerate() {
        let middle = places.middle(number);
        let (name, colour) = (&headings[*column], colours[*column]);
        svg.of_model(name, |svg| {
            places.label(svg, number, name, &format!("{:.3} ({})", summary.mean, summary.n));
            let spread = if is_binary {
                let interval =
                    intervals.iter().find(|cell| cell.column == *column).and_then(|cell| cell.interval);
                bar(svg, &x, middle, colour, interval)
            } else {
                box_of(svg, &x, middle, colour, values, summary)
            };
            let tip = format!("{name}: mean {:.3}, {spread}, n {}", summary.mean, summary.n);
            // Always the same scatter, so that equal reports are equal files.
            let mut random = SplitMix64::new(seed_of(name));
            let marks: Vec<(f64, f64)> =
                values.iter().map(|value| (x.at(*value), middle + (random.unit() - 0.5) * 13.0)).collect();
            svg.crosses(&marks, CROSS, colour);
            svg.circle((x.at(summary.mean), middle), 5.0, None, &tip);
        });
    }
    let marks = if is_binary { INTERVALS } else { BOXES };
    svg.legend(&[Some(marks), mixed(all)].into_iter().flatten().collect::<Vec<_>>());
    svg
}

const BOXES: &str = "box: quartiles, line: median, whiskers: furthest value within 1.5 boxes, cross: one dialogue, circle: mean";

const INTERVALS: &str =
    "all values are 0 or 1; bar: 95 % interval of the mean, cross: one dialogue, circle: mean";

/// The interval of a mean; what it says, in words.
fn bar(svg: &mut Svg, x: &Scale, middle: f64, colour: &str, interval: Option<Interval>) -> String {
    let Some(Interval { low, high }) = interval else { return "no interval".to_owned() };
    svg.rect((x.at(low), middle - 3.0), ((x.at(high) - x.at(low)).max(2.0), 6.0), colour, 0.45, "");
    for end in [low, high] {
        svg.stroke((x.at(end), middle - 6.0), (x.at(end), middle + 6.0), colour, 1.6);
    }
    format!("95 % interval {low:.3} to {high:.3}")
}

/// Quartiles and whiskers; what they say, in words.
fn box_of(
    svg: &mut Svg,
    x: &Scale,
    middle: f64,
    colour: &str,
    values: &[f64],
    summary: &SampleSummary,
) -> String {
    let (low, high) = whiskers(values, summary);
    svg.stroke((x.at(low), middle), (x.at(high), middle), colour, 1.2);
    for end in [low, high] {
        svg.stroke((x.at(end), middle - 4.0), (x.at(end), middle + 4.0), colour, 1.2);
    }
    let box_width = (x.at(summary.q3) - x.at(summary.q1)).max(2.0);
    svg.rect((x.at(summary.q1), middle - 7.0), (box_width, 14.0), colour, 0.3, "");
    svg.stroke((x.at(summary.median), middle - 7.0), (x.at(summary.median), middle + 7.0), colour, 2.0);
    format!("median {:.3}, quartiles {:.3} and {:.3}", summary.median, summary.q1, summary.q3)
}

/// The furthest values within one and a half box lengths of the box.
fn whiskers(values: &[f64], summary: &SampleSummary) -> (f64, f64) {
    let reach = 1.5 * (summary.q3 - summary.q1);
    let within = values.iter().filter(|value| **value >= summary.q1 - reach && **value <= summary.q3 + reach);
    within.fold((summary.q1, summary.q3), |(low, high), value| (low.min(*value), high.max(*value)))
}

/// A seed from a name, so that points lie in the same places whatever else is in a report.
fn seed_of(name: &str) -> u64 {
    name.bytes().chain([0]).fold(0x6b67_666c, |state, byte| SplitMix64::mix(state ^ u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn every_model_has_a_box_and_every_dialogue_a_cross() {
        let all = matrix(
            &["a", "b"],
            &["t"],
            20,
            |model, _, n| if model == 0 { 0.5 } else { f64::from(n % 3) / 2.0 },
        );
        let text = of_task(&all, 0, Breadth::Wide).document();
        assert_eq!(text.matches("<circle").count(), 2);
        assert_eq!(text.matches('M').count(), 40);
        let values = [0.0, 0.5, 0.5, 0.5, 0.5, 1.0];
        let summary = SampleSummary::of(values).unwrap();
        assert_eq!(whiskers(&values, &summary), (0.5, 0.5), "what lies outside is no whisker");
    }

    #[test]
    fn zeros_and_ones_have_bars_of_their_interval_and_no_box() {
        let of = |half: f64| {
            let all = matrix(&["a"], &["t"], 20, |_, _, n| if n % 2 == 0 { half } else { 1.0 });
            of_task(&all, 0, Breadth::Wide).document()
        };
        assert!(of(0.0).contains("95 % interval 0.") && !of(0.0).contains("quartiles"));
        assert!(of(0.5).contains("quartiles") && !of(0.5).contains("interval"));
    }
}

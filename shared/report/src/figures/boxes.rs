//! Box plots of one task over models, with single values and mean, as in the articles on LLM-KG-Bench, but horizontal,
//! so that names are readable.

use domain::seed::SplitMix64;
use present::figure::scale::{Scale, around, short, ticks};
use present::figure::svg::{Anchor, SIZE, Svg};
use present::figure::text::{fitted, widest};

use super::{colours, mixed};
use crate::dialogues::{ColumnId, Dialogues, TaskId};
use crate::stats::Summary;

const ROW: f64 = 22.0;
const WIDTH: f64 = 900.0;
const TOP: f64 = 58.0;
const BELOW: f64 = 46.0;
const NAMES_MAX: f64 = 260.0;
const NUMBERS: f64 = 110.0;

/// The box plot of a task, the best model first. Models without a value are left out.
pub fn of_task(all: &Dialogues, task: TaskId) -> Svg {
    let headings = all.headings();
    let colours = colours(all);
    let mut rows: Vec<(ColumnId, Vec<f64>, Summary)> = (0..all.columns.len())
        .filter_map(|column| {
            let values: Vec<f64> = all.of(column, task).filter_map(|dialogue| dialogue.headline).collect();
            let summary = Summary::of(values.iter().copied())?;
            Some((column, values, summary))
        })
        .collect();
    let mean = |column| rows.iter().find(|row| row.0 == column).map(|row| row.2.mean);
    let order = all.ranked(mean);
    rows.sort_by_key(|row| order.iter().position(|column| *column == row.0));
    let name = &all.tasks[task];
    let height = TOP + ROW * rows.len() as f64 + BELOW;
    let mut svg = Svg::new(WIDTH, height, &format!("{} · {}", name.label, name.headline));
    let left = 24.0 + widest(rows.iter().map(|row| headings[row.0].as_str()), SIZE, NAMES_MAX);
    let range = around(rows.iter().flat_map(|row| [row.2.min, row.2.max]));
    let x = Scale::linear(range, (left, WIDTH - NUMBERS - 12.0));
    let bottom = TOP + ROW * rows.len() as f64;
    for tick in ticks(range) {
        svg.line((x.at(tick), TOP - 6.0), (x.at(tick), bottom), "faint");
        svg.text((x.at(tick), TOP - 12.0), Anchor::Middle, 11.0, "soft", &short(tick));
    }
    svg.text((WIDTH - 12.0, TOP - 12.0), Anchor::End, 11.0, "soft", "mean (n)");
    for (number, (column, values, summary)) in rows.iter().enumerate() {
        let middle = TOP + ROW * (number as f64 + 0.5);
        let (name, colour) = (&headings[*column], colours[*column]);
        svg.text((left - 10.0, middle + 4.0), Anchor::End, SIZE, "", &fitted(name, SIZE, NAMES_MAX));
        let tip = format!(
            "{name}: mean {:.3}, median {:.3}, quartiles {:.3} and {:.3}, n {}",
            summary.mean, summary.median, summary.q1, summary.q3, summary.n
        );
        let (low, high) = whiskers(values, summary);
        svg.stroke((x.at(low), middle), (x.at(high), middle), colour, 1.2);
        for end in [low, high] {
            svg.stroke((x.at(end), middle - 4.0), (x.at(end), middle + 4.0), colour, 1.2);
        }
        let box_width = (x.at(summary.q3) - x.at(summary.q1)).max(2.0);
        svg.rect((x.at(summary.q1), middle - 7.0), (box_width, 14.0), colour, 0.3, &tip);
        svg.stroke((x.at(summary.median), middle - 7.0), (x.at(summary.median), middle + 7.0), colour, 2.0);
        // Always the same scatter, so that equal reports are equal files.
        let mut random = SplitMix64::new(seed_of(name));
        let places: Vec<(f64, f64)> =
            values.iter().map(|value| (x.at(*value), middle + (random.unit() - 0.5) * 13.0)).collect();
        svg.crosses(&places, 2.4, colour);
        svg.circle((x.at(summary.mean), middle), 5.0, None, &tip);
        let text = format!("{:.3} ({})", summary.mean, summary.n);
        svg.text((WIDTH - 12.0, middle + 4.0), Anchor::End, SIZE, "", &text);
    }
    let marks = "box: quartiles, line: median, whiskers: furthest value within 1.5 boxes, cross: one dialogue, circle: mean";
    svg.legend(&[Some(marks), mixed(all)].into_iter().flatten().collect::<Vec<_>>());
    svg
}

/// The furthest values within one and a half box lengths of the box.
fn whiskers(values: &[f64], summary: &Summary) -> (f64, f64) {
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
        let text = of_task(&all, 0).document();
        assert_eq!(text.matches("<circle").count(), 2);
        assert_eq!(text.matches('M').count(), 2 * 40, "two strokes per cross");
        let values = [0.0, 0.5, 0.5, 0.5, 0.5, 1.0];
        let summary = Summary::of(values).unwrap();
        assert_eq!(whiskers(&values, &summary), (0.5, 0.5), "what lies outside is no whisker");
    }

    #[test]
    fn a_task_without_values_is_an_empty_plot() {
        let mut all = matrix(&["a"], &["t"], 1, |_, _, _| 1.0);
        let task = all.task("u", "RdfFriendCount", &["f1"]);
        assert!(of_task(&all, task).document().contains("u · f1"));
        assert_eq!([0.0, -0.0001, 0.5, 1.0, -666.0].map(short), ["0", "0", "0.5", "1", "-666"]);
    }
}

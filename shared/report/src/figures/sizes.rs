//! Score against size.

use super::{colours, mixed};
use crate::analysis::cells::ColumnStatistics;
use crate::analysis::cells::totals;
use crate::dialogues::{Column, Dialogues};
use crate::draw::scale::{Scale, decades, short, ticks};
use crate::draw::svg::{Anchor, Breadth, Svg};
use crate::draw::text::{Label, fitted, placed};
use crate::figures::{DrawnPlot, Plot};

/// See [`sizes`].
pub static PLOT: Plot = Plot {
    heading: "Score and size",
    is_open: false,
    draw: |all, _, breadth| {
        let is_stated = all.columns.iter().any(|column| column.size.is_some());
        if is_stated { DrawnPlot::one("sizes", sizes(all, breadth)) } else { Vec::new() }
    },
};

/// What the horizontal axis is.
const AXIS: &str = "billions of parameters, as names state them";

/// What the marks are.
const MARKS: &str = "bar: 95 % interval; open circle: the parameters active in each token; models whose names state no size are left out";

const TOP: f64 = 44.0;
const BOTTOM: f64 = 470.0;
/// Room below the plot for the axis, and for each line of the key.
const BELOW: f64 = 44.0;
const KEY_LINE: f64 = 15.0;
const LABEL: f64 = 11.0;
/// Maximum width of names, in pixels.
const NAMES_MAX: f64 = 240.0;
/// Fewer round powers than this say little on an axis.
const MARKS_MIN: usize = 3;
/// Room for a name in the key.
const KEY_NAME: f64 = 280.0;

/// A model in a plot.
struct Point {
    x: f64,
    /// The parameters active in each token.
    part: Option<f64>,
    y: f64,
    low: f64,
    high: f64,
    name: String,
    colour: &'static str,
}

/// The models whose names state their size and that have a mean.
fn points(all: &Dialogues) -> Vec<Point> {
    let (headings, colours) = (all.headings(), colours(all));
    let point = |total: &ColumnStatistics| {
        let y = total.mean?;
        let (low, high) = total.interval().map_or((y, y), |interval| (interval.low, interval.high));
        let Column { size, active, .. } = &all.columns[total.column];
        let x = size.filter(|x| *x > 0.0 && x.is_finite())?;
        let part = active.filter(|active| *active > 0.0);
        Some(Point {
            x,
            part,
            y,
            low,
            high,
            name: headings[total.column].clone(),
            colour: colours[total.column],
        })
    };
    totals(all).iter().filter_map(point).collect()
}

/// Mean score against billions of parameters.
fn sizes(all: &Dialogues, breadth: Breadth) -> Svg {
    let points = points(all);
    let (left, right) = sides(breadth);
    let range = range(&points);
    let x = Scale::logarithmic(range.unwrap_or((1.0, 10.0)), (left + 10.0, right - 10.0));
    let y = Scale::linear((0.0, 1.0), (BOTTOM, TOP));
    let places: Vec<(f64, f64)> = points.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
    let names: Vec<String> = points.iter().map(|point| fitted(&point.name, LABEL, NAMES_MAX)).collect();
    let labels = placed(&places, &names, LABEL, (left, right));
    let key: Vec<String> = labels
        .iter()
        .zip(&names)
        .filter_map(|(label, name)| match label {
            Label::Number(number, _) => Some(format!("{number} {name}")),
            Label::Name(_) => None,
        })
        .collect();
    let lines = key.len().div_ceil(((right - left) / KEY_NAME).max(1.0) as usize);
    let mut svg = Svg::new(breadth.width(), BOTTOM + BELOW + KEY_LINE * lines as f64, "Score and size");
    frame(&mut svg, (left, right), (&x, &y), range);
    for (((point, &(px, py)), label), name) in points.iter().zip(&places).zip(&labels).zip(&names) {
        svg.of_model(&point.name, |svg| {
            svg.stroke((px, y.at(point.low)), (px, y.at(point.high)), point.colour, 1.0);
            let tip = format!(
                "{}: {:.3} ({:.3} to {:.3}), {AXIS}: {}",
                point.name,
                point.y,
                point.low,
                point.high,
                short(point.x)
            );
            if let Some(part) = point.part {
                svg.stroke((x.at(part), py), (px, py), point.colour, 1.0);
                svg.circle((x.at(part), py), 4.0, None, &format!("{}: {part:.1} active", point.name));
            }
            svg.circle((px, py), 5.0, Some(point.colour), &tip);
            match *label {
                Label::Name(place) => svg.text(place, Anchor::Start, LABEL, "halo", name),
                Label::Number(number, place) => {
                    svg.text(place, Anchor::Start, LABEL, "halo", &number.to_string());
                }
            }
        });
    }
    for (number, text) in key.iter().enumerate() {
        let (row, column) = (number % lines.max(1), number / lines.max(1));
        let place = (left + KEY_NAME * column as f64, BOTTOM + 58.0 + KEY_LINE * row as f64);
        svg.text(place, Anchor::Start, LABEL, "", text);
    }
    let none = points.is_empty().then_some("No model has both values.");
    svg.legend(&[Some(MARKS), none, mixed(all)].into_iter().flatten().collect::<Vec<_>>());
    svg
}

/// The ends of the plot.
fn sides(breadth: Breadth) -> (f64, f64) {
    match breadth {
        Breadth::Wide => (60.0, breadth.width() - 20.0),
        Breadth::Narrow => (48.0, breadth.width() - 8.0),
    }
}

/// Axes with their marks.
fn frame(svg: &mut Svg, (left, right): (f64, f64), (x, y): (&Scale, &Scale), range: Option<(f64, f64)>) {
    for tick in ticks((0.0, 1.0)) {
        svg.line((left, y.at(tick)), (right, y.at(tick)), "faint");
        svg.text((left - 8.0, y.at(tick) + 4.0), Anchor::End, 11.0, "soft", &short(tick));
    }
    svg.turned_text((18.0, (TOP + BOTTOM) / 2.0), -90.0, Anchor::Middle, 11.0, "soft", "mean of tasks");
    svg.text(((left + right) / 2.0, BOTTOM + 36.0), Anchor::Middle, 11.0, "soft", AXIS);
    svg.line((left, BOTTOM), (right, BOTTOM), "line");
    let marks = range.map(|range| {
        Some(decades(range)).filter(|marks| marks.len() >= MARKS_MIN).unwrap_or_else(|| ticks(range))
    });
    for tick in marks.unwrap_or_default() {
        svg.line((x.at(tick), TOP), (x.at(tick), BOTTOM), "faint");
        svg.text((x.at(tick), BOTTOM + 16.0), Anchor::Middle, 11.0, "soft", &short(tick));
    }
}

/// The range of the values, with some room.
fn range(points: &[Point]) -> Option<(f64, f64)> {
    let low = points.iter().map(|point| point.part.unwrap_or(point.x)).reduce(f64::min)?;
    let high = points.iter().map(|point| point.x).reduce(f64::max)?;
    Some((low / 1.3, high * 1.3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn models_without_a_value_are_left_out_and_an_empty_plot_says_so() {
        let mut all = matrix(&["a", "b"], &["t"], 5, |_, _, _| 0.5);
        assert!(sizes(&all, Breadth::Narrow).document().contains("No model has both values."));
        (all.columns[1].size, all.columns[1].active) = (Some(57.0), Some(14.0));
        let text = sizes(&all, Breadth::Narrow).document();
        assert!(text.contains(">b</text>") && !text.contains(">a</text>"));
        assert!(text.contains("b: 14.0 active"), "{text}");
        assert!(sizes(&Dialogues::default(), Breadth::Wide).document().contains("No model"));
    }

    #[test]
    fn no_name_is_left_out_of_a_crowd() {
        let names: Vec<String> = (0..41).map(|n| format!("a-model-with-a-long-name-{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut all = matrix(&names, &["t"], 5, |_, _, _| 0.5);
        all.columns.iter_mut().for_each(|column| column.size = Some(7.0));
        let text = sizes(&all, Breadth::Wide).document();
        for name in names {
            assert!(
                text.contains(&format!(">{name}</text>")) || text.contains(&format!(" {name}</text>")),
                "{name}"
            );
        }
    }
}

//! Scatter plots of models: score against size, and score against cost.

use present::figure::scale::{Scale, decades, short, ticks};
use present::figure::svg::{Anchor, Svg};
use present::figure::text::{fitted, width};

use super::{colours, mixed};
use crate::analysis::cells::totals;
use crate::dialogues::Dialogues;
use crate::summaries::ColumnStatistics;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 470.0;
const LABEL: f64 = 11.0;
/// Maximum width of names, in pixels.
const NAMES_MAX: f64 = 240.0;

/// A model in a plot.
struct Point {
    x: f64,
    y: f64,
    low: f64,
    high: f64,
    name: String,
    colour: &'static str,
}

/// Mean score against billions of parameters, for models whose names state them.
pub fn sizes(all: &Dialogues) -> Svg {
    let points = points(all, |total| all.columns[total.column].size);
    let mut svg = Svg::new(WIDTH, HEIGHT, "Score and size");
    draw(&mut svg, &points, "billions of parameters, as names state them", false);
    notes(&mut svg, all, &points, "bar: 95 % interval; models whose names state no size are left out");
    svg
}

/// Mean score against tokens written per dialogue, or against seconds if tokens are not known of all models. The models
/// that no other one beats in both are connected.
pub fn cost(all: &Dialogues) -> Svg {
    let per_dialogue =
        |total: &ColumnStatistics, sum: Option<f64>| sum.map(|sum| sum / total.dialogues.max(1) as f64);
    let tokens =
        |total: &ColumnStatistics| per_dialogue(total, total.completion_tokens.map(|sum| sum as f64));
    let seconds = |total: &ColumnStatistics| per_dialogue(total, total.seconds);
    let known = totals(all).iter().filter(|total| total.mean.is_some()).all(|total| tokens(total).is_some());
    let (points, axis) = if known && !all.is_empty() {
        (points(all, tokens), "tokens written per dialogue")
    } else {
        (points(all, seconds), "seconds per dialogue")
    };
    let mut svg = Svg::new(WIDTH, HEIGHT, "Score and cost");
    draw(&mut svg, &points, axis, true);
    notes(&mut svg, all, &points, "line: models that no other beats in both; bar: 95 % interval");
    svg
}

fn points(all: &Dialogues, x: impl Fn(&ColumnStatistics) -> Option<f64>) -> Vec<Point> {
    let (headings, colours) = (all.headings(), colours(all));
    let point = |total: &ColumnStatistics| {
        let y = total.mean?;
        let ends = total.interval.map_or((y, y), |interval| (interval.low, interval.high));
        let x = x(total).filter(|x| *x > 0.0 && x.is_finite())?;
        let (name, colour) = (headings[total.column].clone(), colours[total.column]);
        Some(Point { x, y, low: ends.0, high: ends.1, name, colour })
    };
    totals(all).iter().filter_map(point).collect()
}

fn notes(svg: &mut Svg, all: &Dialogues, points: &[Point], marks: &str) {
    let none = points.is_empty().then_some("No model has both values.");
    svg.legend(&[Some(marks), none, mixed(all)].into_iter().flatten().collect::<Vec<_>>());
}

fn draw(svg: &mut Svg, points: &[Point], axis: &str, front: bool) {
    let right = WIDTH - 20.0;
    let y = Scale::linear((0.0, 1.0), (BOTTOM, TOP));
    for tick in ticks((0.0, 1.0)) {
        svg.line((LEFT, y.at(tick)), (right, y.at(tick)), "faint");
        svg.text((LEFT - 8.0, y.at(tick) + 4.0), Anchor::End, 11.0, "soft", &short(tick));
    }
    svg.turned_text((18.0, (TOP + BOTTOM) / 2.0), -90.0, Anchor::Middle, 11.0, "soft", "mean of tasks");
    svg.text(((LEFT + right) / 2.0, BOTTOM + 36.0), Anchor::Middle, 11.0, "soft", axis);
    svg.line((LEFT, BOTTOM), (right, BOTTOM), "line");
    let Some(range) = range(points) else { return };
    let x = Scale::logarithmic(range, (LEFT + 10.0, right - 10.0));
    for tick in decades(range) {
        svg.line((x.at(tick), TOP), (x.at(tick), BOTTOM), "faint");
        svg.text((x.at(tick), BOTTOM + 16.0), Anchor::Middle, 11.0, "soft", &short(tick));
    }
    if front {
        let path: Vec<(f64, f64)> =
            pareto(points).iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
        svg.outline(&path, false, "class=\"accent none\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"", "");
    }
    let place = |point: &Point| (x.at(point.x), y.at(point.y));
    for point in points {
        let px = x.at(point.x);
        svg.stroke((px, y.at(point.low)), (px, y.at(point.high)), point.colour, 1.0);
    }
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    // Names lie above the bars, with a border of the ground around them, and below the circles.
    for point in points {
        let (px, py) = place(point);
        let name = fitted(&point.name, LABEL, NAMES_MAX);
        let length = width(&name, LABEL);
        // To the right where there is room, else to the left; above or below where another name or, if that can be, a
        // circle is.
        let begin = if px + 9.0 + length <= right { px + 9.0 } else { px - 9.0 - length };
        let free = |line: f64| {
            taken.iter().all(|(l, r, t)| begin > *r || begin + length < *l || (line - t).abs() >= 12.0)
        };
        let clear = |line: f64| {
            points
                .iter()
                .map(place)
                .all(|(x, y)| x < begin - 5.0 || x > begin + length + 5.0 || (line - 4.0 - y).abs() >= 9.0)
        };
        let places =
            || [4.0, 16.0, -8.0, 28.0, -20.0].into_iter().map(|shift| py + shift).filter(|line| free(*line));
        if let Some(line) = places().find(|line| clear(*line)).or_else(|| places().next()) {
            taken.push((begin, begin + length, line));
            svg.text((begin, line), Anchor::Start, LABEL, "halo", &name);
        }
    }
    for point in points {
        let tip = format!(
            "{}: {:.3} ({:.3} to {:.3}), {axis}: {:.1}",
            point.name, point.y, point.low, point.high, point.x
        );
        svg.circle(place(point), 5.0, Some(point.colour), &tip);
    }
}

/// The range of the values, with some room.
fn range(points: &[Point]) -> Option<(f64, f64)> {
    let low = points.iter().map(|point| point.x).reduce(f64::min)?;
    let high = points.iter().map(|point| point.x).reduce(f64::max)?;
    Some((low / 1.3, high * 1.3))
}

/// The points that no other one beats: none has the same score at a lower cost.
fn pareto(points: &[Point]) -> Vec<&Point> {
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by(|a, b| a.x.total_cmp(&b.x).then(b.y.total_cmp(&a.y)));
    let mut best = f64::NEG_INFINITY;
    sorted.retain(|point| {
        let better = point.y > best;
        best = best.max(point.y);
        better
    });
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn the_front_holds_whom_nobody_beats() {
        let point = |x: f64, y: f64| Point { x, y, low: y, high: y, name: String::new(), colour: "#000" };
        let points = [point(1.0, 0.5), point(2.0, 0.4), point(3.0, 0.9), point(1.0, 0.3), point(9.0, 0.9)];
        let front: Vec<(f64, f64)> = pareto(&points).iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(front, [(1.0, 0.5), (3.0, 0.9)]);
    }

    #[test]
    fn models_without_a_size_are_left_out_and_an_empty_plot_says_so() {
        let mut all = matrix(&["a", "b"], &["t"], 5, |_, _, _| 0.5);
        assert!(sizes(&all).document().contains("No model has both values."));
        all.columns[1].size = Some(8.0);
        let text = sizes(&all).document();
        assert!(text.contains(">b</text>") && !text.contains(">a</text>"));
        assert!(cost(&all).document().contains("tokens written per dialogue"));
        assert!(cost(&Dialogues::default()).document().contains("No model"));
    }
}

//! Scatter plots of models: score against size, against tokens written, against money, and against time.

use crate::figures::scale::{Scale, decades, short, ticks};
use crate::figures::svg::{Anchor, Breadth, Svg};
use crate::figures::text::fitted;

use super::{colours, mixed};
use crate::analysis::cells::totals;
use crate::analysis::spending::spending;
use crate::dialogues::{ColumnId, Dialogues};
use crate::labels::{Label, placed};
use crate::plot::{DrawnPlot, PagePlace, Plot};
use crate::summaries::ColumnStatistics;

/// See [`tokens`].
pub static TOKENS: Plot = Plot {
    heading: "Score and tokens written",
    place: |all| match totals(all).iter().any(|total| total.completion_tokens.is_some()) {
        true => PagePlace::Folded,
        false => PagePlace::Nowhere,
    },
    draw: |all, _, breadth| DrawnPlot::one("tokens", tokens(all, breadth)),
};

/// See [`cost`].
pub static COST: Plot = Plot {
    heading: "Score and cost",
    place: |all| match (0..all.columns.len()).any(|column| of_many(all, column).is_some()) {
        true => PagePlace::Folded,
        false => PagePlace::Nowhere,
    },
    draw: |all, _, breadth| DrawnPlot::one("cost", cost(all, breadth)),
};

/// See [`time`].
pub static TIME: Plot = Plot {
    heading: "Score and time",
    place: |all| match totals(all).iter().any(|total| total.seconds.is_some()) {
        true => PagePlace::Folded,
        false => PagePlace::Nowhere,
    },
    draw: |all, _, breadth| DrawnPlot::one("time", time(all, breadth)),
};

/// See [`sizes`].
pub static SIZES: Plot = Plot {
    heading: "Score and size",
    place: |all| match all.columns.iter().any(|column| column.size.is_some()) {
        true => PagePlace::Folded,
        false => PagePlace::Nowhere,
    },
    draw: |all, _, breadth| DrawnPlot::one("sizes", sizes(all, breadth)),
};

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
    column: ColumnId,
    x: f64,
    /// A part of `x`, such as the active parameters.
    part: Option<f64>,
    y: f64,
    low: f64,
    high: f64,
    name: String,
    colour: &'static str,
}

/// What a plot is about.
struct About<'a> {
    title: &'a str,
    axis: &'a str,
    marks: &'a str,
    /// Whether the models that no other one beats in both are connected: less is better on the axis.
    has_front: bool,
}

/// Mean score against billions of parameters, for models whose names state them.
fn sizes(all: &Dialogues, breadth: Breadth) -> Svg {
    let mut points = points(all, |total| all.columns[total.column].size);
    for point in &mut points {
        point.part = all.columns[point.column].active.filter(|active| *active > 0.0);
    }
    let about = About {
        title: "Score and size",
        axis: "billions of parameters, as names state them",
        marks: "bar: 95 % interval; open circle: the parameters active in each token; models whose names state no size are left out",
        has_front: false,
    };
    draw(all, &points, &about, breadth)
}

/// Mean score against tokens written per dialogue, of models whose tokens are known.
fn tokens(all: &Dialogues, breadth: Breadth) -> Svg {
    let points = points(all, |total| per_dialogue(total, total.completion_tokens.map(|sum| sum as f64)));
    let about = About {
        title: "Score and tokens written",
        axis: "tokens written per dialogue",
        marks: "steps: no model is better with fewer tokens; bar: 95 % interval; models whose server counted no tokens are left out",
        has_front: true,
    };
    draw(all, &points, &about, breadth)
}

/// Mean score against the money of dialogues, of models that have a price and whose tokens were counted.
fn cost(all: &Dialogues, breadth: Breadth) -> Svg {
    let points = points(all, |total| of_many(all, total.column));
    let axis = format!("{} per 1 000 dialogues, at list prices", all.prices.currency());
    let about = About {
        title: "Score and cost",
        axis: &axis,
        marks: "steps: no model is better for less money; bar: 95 % interval; models without a price are left out",
        has_front: true,
    };
    draw(all, &points, &about, breadth)
}

fn of_many(all: &Dialogues, column: ColumnId) -> Option<f64> {
    spending(all, column)?.of_many
}

/// Mean score against seconds per dialogue.
fn time(all: &Dialogues, breadth: Breadth) -> Svg {
    let points = points(all, |total| per_dialogue(total, total.seconds));
    let about = About {
        title: "Score and time",
        axis: "seconds per dialogue, to the last answer",
        marks: "steps: no model is better in less time; bar: 95 % interval",
        has_front: true,
    };
    draw(all, &points, &about, breadth)
}

fn per_dialogue(total: &ColumnStatistics, sum: Option<f64>) -> Option<f64> {
    sum.map(|sum| sum / total.dialogues.max(1) as f64)
}

fn points(all: &Dialogues, x: impl Fn(&ColumnStatistics) -> Option<f64>) -> Vec<Point> {
    let (headings, colours) = (all.headings(), colours(all));
    let point = |total: &ColumnStatistics| {
        let y = total.mean?;
        let ends = total.interval().map_or((y, y), |interval| (interval.low, interval.high));
        let x = x(total).filter(|x| *x > 0.0 && x.is_finite())?;
        let (name, colour) = (headings[total.column].clone(), colours[total.column]);
        Some(Point { column: total.column, x, part: None, y, low: ends.0, high: ends.1, name, colour })
    };
    totals(all).iter().filter_map(point).collect()
}

fn draw(all: &Dialogues, points: &[Point], about: &About<'_>, breadth: Breadth) -> Svg {
    let (left, right) = sides(breadth);
    let range = range(points);
    let x = Scale::logarithmic(range.unwrap_or((1.0, 10.0)), (left + 10.0, right - 10.0));
    let y = Scale::linear((0.0, 1.0), (BOTTOM, TOP));
    let places: Vec<(f64, f64)> = points.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
    let names: Vec<String> = points.iter().map(|point| fitted(&point.name, LABEL, NAMES_MAX)).collect();
    let steps = if about.has_front { steps(points, &x, &y, right) } else { Vec::new() };
    let labels = placed(&places, &names, LABEL, (left, right), &steps);
    let key: Vec<String> = labels
        .iter()
        .zip(&names)
        .filter_map(|(label, name)| match label {
            Label::Number(number, _) => Some(format!("{number} {name}")),
            Label::Name(_) => None,
        })
        .collect();
    let lines = key.len().div_ceil(((right - left) / KEY_NAME).max(1.0) as usize);
    let mut svg = Svg::new(breadth.width(), BOTTOM + BELOW + KEY_LINE * lines as f64, about.title);
    frame(&mut svg, (left, right), (&x, &y), range, about.axis);
    if about.has_front {
        svg.outline(&steps, false, "class=\"accent none\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"", "");
    }
    for (((point, &(px, py)), label), name) in points.iter().zip(&places).zip(&labels).zip(&names) {
        svg.of_model(&point.name, |svg| {
            svg.stroke((px, y.at(point.low)), (px, y.at(point.high)), point.colour, 1.0);
            let tip = format!(
                "{}: {:.3} ({:.3} to {:.3}), {}: {}",
                point.name,
                point.y,
                point.low,
                point.high,
                about.axis,
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
    svg.legend(&[Some(about.marks), none, mixed(all)].into_iter().flatten().collect::<Vec<_>>());
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
fn frame(
    svg: &mut Svg,
    (left, right): (f64, f64),
    (x, y): (&Scale, &Scale),
    range: Option<(f64, f64)>,
    axis: &str,
) {
    for tick in ticks((0.0, 1.0)) {
        svg.line((left, y.at(tick)), (right, y.at(tick)), "faint");
        svg.text((left - 8.0, y.at(tick) + 4.0), Anchor::End, 11.0, "soft", &short(tick));
    }
    svg.turned_text((18.0, (TOP + BOTTOM) / 2.0), -90.0, Anchor::Middle, 11.0, "soft", "mean of tasks");
    svg.text(((left + right) / 2.0, BOTTOM + 36.0), Anchor::Middle, 11.0, "soft", axis);
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

/// The front on the plot, up to its right end.
fn steps(points: &[Point], x: &Scale, y: &Scale, right: f64) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64)> =
        front(points).into_iter().map(|(effort, score)| (x.at(effort), y.at(score))).collect();
    steps.extend(steps.last().map(|&(_, line)| (right - 10.0, line)));
    steps
}

/// The best score that each effort buys, as corners of steps: between two models nobody knows a better one.
fn front(points: &[Point]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by(|a, b| a.x.total_cmp(&b.x).then(b.y.total_cmp(&a.y)));
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for point in sorted {
        match corners.last() {
            Some(&(_, best)) if point.y <= best => {}
            Some(&(_, best)) => corners.extend([(point.x, best), (point.x, point.y)]),
            None => corners.push((point.x, point.y)),
        }
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::{matrix, priced};

    #[test]
    fn the_front_rises_in_steps_over_whom_nobody_beats() {
        let point = |x: f64, y: f64| Point {
            column: 0,
            x,
            part: None,
            y,
            low: y,
            high: y,
            name: String::new(),
            colour: "#000",
        };
        let points = [point(1.0, 0.5), point(2.0, 0.4), point(3.0, 0.9), point(1.0, 0.3), point(9.0, 0.9)];
        assert_eq!(front(&points), [(1.0, 0.5), (3.0, 0.5), (3.0, 0.9)]);
        assert_eq!(front(&[]), []);
    }

    #[test]
    fn models_without_a_value_are_left_out_and_an_empty_plot_says_so() {
        let mut all = matrix(&["a", "b"], &["t"], 5, |_, _, _| 0.5);
        assert!(sizes(&all, Breadth::Narrow).document().contains("No model has both values."));
        (all.columns[1].size, all.columns[1].active) = (Some(57.0), Some(14.0));
        let text = sizes(&all, Breadth::Narrow).document();
        assert!(text.contains(">b</text>") && !text.contains(">a</text>"));
        assert!(text.contains("b: 14.0 active"), "{text}");
        assert!(tokens(&all, Breadth::Wide).document().contains("tokens written per dialogue"));
        assert!(time(&all, Breadth::Wide).document().contains("seconds per dialogue"));
        assert!(time(&Dialogues::default(), Breadth::Wide).document().contains("No model"));
    }

    #[test]
    fn only_what_has_a_price_stands_in_the_plot_of_costs() {
        let all = priced(&["paid", "own"]);
        let text = cost(&all, Breadth::Wide).document();
        assert!(text.contains(">paid</text>") && !text.contains(">own</text>"), "{text}");
        assert!(text.contains("EUR per 1 000 dialogues, at list prices: 0.07"), "{text}");
        assert_eq!((COST.place)(&all), PagePlace::Folded);
        assert_eq!((COST.place)(&priced(&["own"])), PagePlace::Nowhere);
    }

    #[test]
    fn no_name_is_left_out_of_a_crowd() {
        let names: Vec<String> = (0..41).map(|n| format!("a-model-with-a-long-name-{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let text = time(&matrix(&names, &["t"], 5, |_, _, _| 0.5), Breadth::Wide).document();
        for name in names {
            assert!(
                text.contains(&format!(">{name}</text>")) || text.contains(&format!(" {name}</text>")),
                "{name}"
            );
        }
    }
}

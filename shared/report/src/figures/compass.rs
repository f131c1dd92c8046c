//! Capability compasses: one axis per category of a scheme, the mean as a line, and a band of half a standard deviation
//! to both sides, as in the published compasses.

use std::f64::consts::TAU;

use super::mixed;
use crate::analysis::scheme::Scheme;
use crate::dialogues::Dialogues;
use crate::draw::svg::{Anchor, Breadth, Svg};
use crate::draw::text::fitted;
use crate::figures::{DrawnPlot, Plot};
use crate::views::combined::{CategoryScore, Combined, combined};

/// See [`compasses`].
pub static PLOT: Plot = Plot {
    heading: "Compasses",
    is_open: true,
    draw: |all, scheme, breadth| {
        let has_values = combined(all, scheme).iter().any(has_values);
        let draw = || DrawnPlot::one("compasses", compasses(all, scheme, breadth));
        has_values.then(draw).unwrap_or_default()
    },
};

/// Minimum width of a compass with its names, and its height, in pixels.
const CELL_MIN: f64 = 220.0;
const CELL: f64 = 250.0;
const RADIUS: f64 = 66.0;

/// The line of the means.
const LINE: &str = "class=\"ink none\" stroke-width=\"1.6\" stroke-linejoin=\"round\"";

/// Whether there is anything to draw of a model.
fn has_values(model: &Combined) -> bool {
    model.categories.iter().any(Option::is_some)
}

/// One compass per model, ordered by family and size.
fn compasses(all: &Dialogues, scheme: &Scheme, breadth: Breadth) -> Svg {
    let headings = all.headings();
    let mut found = combined(all, scheme);
    found.retain(has_values);
    let place = |model: &Combined| {
        let column = &all.columns[model.column];
        (column.family.clone(), column.size.unwrap_or(f64::INFINITY))
    };
    found.sort_by(|a, b| {
        let (a, b) = (place(a), place(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let across = (breadth.width() / CELL_MIN) as usize;
    let rows = found.len().div_ceil(across);
    let width = breadth.width() / across as f64;
    let mut svg = Svg::new(breadth.width(), 40.0 + CELL * rows as f64, &scheme.title);
    for (number, model) in found.iter().enumerate() {
        let (column, row) = (number % across, number / across);
        let center = (width * (column as f64 + 0.5), 40.0 + CELL * row as f64 + 132.0);
        let name = &headings[model.column];
        svg.of_model(name, |svg| {
            let shown = fitted(name, 13.0, width - 20.0);
            svg.text((center.0, center.1 - 108.0), Anchor::Middle, 13.0, "bold", &shown);
            rings(svg, center, width / 2.0, scheme, &model.categories);
            band(svg, center, &model.categories);
            needle(svg, center, &model.categories, name);
        });
    }
    explain(&mut svg, all, scheme);
    svg
}

fn explain(svg: &mut Svg, all: &Dialogues, scheme: &Scheme) {
    let mut lines: Vec<String> = scheme
        .categories
        .iter()
        .map(|category| {
            let tasks = category.tasks(all).len();
            let what = if category.description.is_empty() {
                String::new()
            } else {
                format!("{}, ", category.description)
            };
            format!("{}: {what}{tasks} tasks", category.name)
        })
        .collect();
    lines.push(
        "line: mean, band: half a standard deviation to both sides; rings: 0.2 to 1, in brackets: no values"
            .to_owned(),
    );
    lines.extend(mixed(all).map(str::to_owned));
    svg.legend(&lines.iter().map(String::as_str).collect::<Vec<_>>());
}

/// The position of a value on an axis. The first axis points right, the others follow counter-clockwise.
fn place(center: (f64, f64), radius: f64, axis: usize, axes: usize, value: f64) -> (f64, f64) {
    let angle = TAU * axis as f64 / axes as f64;
    (center.0 + radius * value * angle.cos(), center.1 - radius * value * angle.sin())
}

/// The axes with their names, which take at most `room` on both sides of the center.
fn rings(svg: &mut Svg, center: (f64, f64), room: f64, scheme: &Scheme, scores: &[Option<CategoryScore>]) {
    let axes = scheme.categories.len();
    for ring in 1..=5 {
        let share = f64::from(ring) / 5.0;
        let corners: Vec<_> = (0..axes).map(|axis| place(center, RADIUS, axis, axes, share)).collect();
        svg.outline(
            &corners,
            true,
            if ring == 5 { "class=\"line none\"" } else { "class=\"faint none\"" },
            "",
        );
    }
    for (axis, category) in scheme.categories.iter().enumerate() {
        svg.line(center, place(center, RADIUS, axis, axes, 1.0), "faint");
        let (x, y) = place(center, RADIUS + 12.0, axis, axes, 1.0);
        let anchor = match x - center.0 {
            aside if aside > 4.0 => Anchor::Start,
            aside if aside < -4.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        let name =
            if scores[axis].is_none() { format!("({})", category.name) } else { category.name.clone() };
        let beside = if anchor == Anchor::Middle { 2.0 * room } else { room - (x - center.0).abs() };
        svg.text((x, y + 4.0), anchor, 11.0, "soft", &fitted(&name, 11.0, beside));
    }
}

/// Places of the categories that have values, clockwise from the first one. An axis without values has no corner: nothing is
/// not zero.
fn corners(
    center: (f64, f64),
    scores: &[Option<CategoryScore>],
    of: impl Fn(&CategoryScore) -> f64,
) -> Vec<(f64, f64)> {
    let known = scores.iter().enumerate().filter_map(|(axis, score)| Some((axis, score.as_ref()?)));
    known.map(|(axis, score)| place(center, RADIUS, axis, scores.len(), of(score).clamp(0.0, 1.0))).collect()
}

/// Half a deviation to both sides of the mean, as a ring: along the outer edge, and back along the inner one.
fn band(svg: &mut Svg, center: (f64, f64), scores: &[Option<CategoryScore>]) {
    let outer = corners(center, scores, |score| score.mean + score.sd / 2.0);
    let inner = corners(center, scores, |score| score.mean - score.sd / 2.0);
    let mut ring = outer.clone();
    ring.extend(outer.first());
    ring.extend(inner.first());
    ring.extend(inner.iter().rev());
    svg.outline(&ring, true, "class=\"band\"", "");
}

/// The line of the means.
fn needle(svg: &mut Svg, center: (f64, f64), scores: &[Option<CategoryScore>], name: &str) {
    let means: Vec<String> = scores
        .iter()
        .map(|score| score.map_or("-".to_owned(), |score| format!("{:.3} ±{:.3}", score.mean, score.sd)))
        .collect();
    let tip = format!("{name}: {}", means.join(", "));
    svg.outline(&corners(center, scores, |score| score.mean), true, LINE, &tip);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scheme::{bundled, named};
    use crate::dialogues::testing::matrix;

    #[test]
    fn axes_begin_in_the_east_and_run_against_the_clock() {
        let near = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9;
        assert!(near(place((0.0, 0.0), 10.0, 0, 4, 1.0), (10.0, 0.0)));
        assert!(near(place((0.0, 0.0), 10.0, 1, 4, 0.5), (0.0, -5.0)), "up is less on a screen");
    }

    #[test]
    fn an_axis_without_values_has_no_corner() {
        let all = matrix(&["a"], &["RdfFriendCount-nt-1"], 5, |_, _, _| 0.5);
        let text = compasses(&all, &named(&bundled(), "semantic").unwrap(), Breadth::Wide).document();
        let (_, line) = text.rsplit_once("<path d=\"").unwrap();
        let corners = line.split('"').next().unwrap();
        assert!(corners.starts_with('M') && !corners.contains('L'), "only R-Ana has values: {corners}");
        assert!(text.contains(">(R-Syn)<"));
    }

    #[test]
    fn every_model_with_a_category_has_a_compass() {
        let all = matrix(&["a", "b"], &["RdfFriendCount-nt-1"], 5, |_, _, _| 0.5);
        let scheme = named(&bundled(), "semantic").unwrap();
        let text = compasses(&all, &scheme, Breadth::Narrow).document();
        assert_eq!(text.matches("class=\"band\"").count(), 2);
        assert!(text.contains("R-Ana: RDF analytics, 1 tasks"));
        assert!(compasses(&Dialogues::default(), &scheme, Breadth::Wide).document().starts_with("<svg"));
    }
}

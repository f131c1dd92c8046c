//! Capability compasses: one axis per category of a scheme, the mean as a line, and a band of half a standard deviation
//! to both sides, as in the published compasses.

use std::f64::consts::TAU;

use present::figure::PALETTE;
use present::figure::svg::{Anchor, Svg};
use present::figure::text::fitted;

use super::mixed;
use crate::analysis::combined::{CategoryScore, Combined, combined};
use crate::analysis::scheme::Scheme;
use crate::dialogues::{ColumnId, Dialogues};

const CELL: f64 = 250.0;
const RADIUS: f64 = 66.0;
const ACROSS: usize = 4;

/// One compass per model, ordered by family and size.
pub fn grid(all: &Dialogues, scheme: &Scheme) -> Svg {
    let headings = all.headings();
    let mut found = combined(all, scheme);
    found.retain(|model| model.categories.iter().any(Option::is_some));
    let place = |model: &Combined| {
        let column = &all.columns[model.column];
        (column.family.clone(), column.size.unwrap_or(f64::INFINITY))
    };
    found.sort_by(|a, b| {
        let (a, b) = (place(a), place(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let across = ACROSS.min(found.len().max(2));
    let rows = found.len().div_ceil(across);
    let legend = 46.0 + 15.0 * scheme.categories.len() as f64;
    let (width, height) = (CELL * across as f64, 40.0 + CELL * rows as f64 + legend);
    let mut svg = Svg::new(width.max(600.0), height, &scheme.title);
    for (number, model) in found.iter().enumerate() {
        let (column, row) = (number % across, number / across);
        let center = (CELL * (column as f64 + 0.5), 40.0 + CELL * row as f64 + 132.0);
        let name = fitted(&headings[model.column], 13.0, CELL - 20.0);
        svg.text((center.0, center.1 - 108.0), Anchor::Middle, 13.0, "bold", &name);
        rings(&mut svg, center, (RADIUS, CELL / 2.0), scheme, Some(&model.categories));
        needle(&mut svg, center, RADIUS, &model.categories, None, &headings[model.column]);
    }
    explain(&mut svg, all, scheme, "band: half a standard deviation to both sides");
    svg
}

/// Several models in one compass, without bands.
pub fn overlay(all: &Dialogues, scheme: &Scheme, columns: &[ColumnId]) -> Svg {
    let headings = all.headings();
    let found = combined(all, scheme);
    let legend = 46.0 + 15.0 * scheme.categories.len() as f64;
    let height = 460.0_f64.max(80.0 + 20.0 * columns.len() as f64) + legend;
    let mut svg = Svg::new(820.0, height, &scheme.title);
    let (center, radius) = ((230.0, 250.0), 160.0);
    rings(&mut svg, center, (radius, 228.0), scheme, None);
    for (number, &column) in columns.iter().enumerate() {
        let colour = PALETTE[number % PALETTE.len()];
        needle(&mut svg, center, radius, &found[column].categories, Some(colour), &headings[column]);
        let y = 70.0 + 20.0 * number as f64;
        svg.rect((470.0, y - 9.0), (12.0, 12.0), colour, 1.0, "");
        let text = found[column].mean.map_or("-".to_owned(), |mean| format!("{mean:.3}"));
        svg.text(
            (490.0, y + 2.0),
            Anchor::Start,
            12.0,
            "",
            &fitted(&format!("{} {text}", headings[column]), 12.0, 310.0),
        );
    }
    explain(&mut svg, all, scheme, "number: combined score");
    svg
}

fn explain(svg: &mut Svg, all: &Dialogues, scheme: &Scheme, marks: &str) {
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
    lines.push(format!("line: mean, {marks}; rings: 0.2 to 1, in brackets: no values"));
    lines.extend(mixed(all).map(str::to_owned));
    svg.legend(&lines.iter().map(String::as_str).collect::<Vec<_>>());
}

/// The position of a value on an axis. The first axis points right, the others follow counter-clockwise.
fn place(center: (f64, f64), radius: f64, axis: usize, axes: usize, value: f64) -> (f64, f64) {
    let angle = TAU * axis as f64 / axes as f64;
    (center.0 + radius * value * angle.cos(), center.1 - radius * value * angle.sin())
}

/// The axes with their names, which take at most `room` on both sides of the center.
fn rings(
    svg: &mut Svg,
    center: (f64, f64),
    (radius, room): (f64, f64),
    scheme: &Scheme,
    scores: Option<&[Option<CategoryScore>]>,
) {
    let axes = scheme.categories.len();
    for ring in 1..=5 {
        let share = f64::from(ring) / 5.0;
        let corners: Vec<_> = (0..axes).map(|axis| place(center, radius, axis, axes, share)).collect();
        svg.outline(
            &corners,
            true,
            if ring == 5 { "class=\"line none\"" } else { "class=\"faint none\"" },
            "",
        );
    }
    for (axis, category) in scheme.categories.iter().enumerate() {
        svg.line(center, place(center, radius, axis, axes, 1.0), "faint");
        let (x, y) = place(center, radius + 12.0, axis, axes, 1.0);
        let anchor = match x - center.0 {
            aside if aside > 4.0 => Anchor::Start,
            aside if aside < -4.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        let missing = scores.is_some_and(|scores| scores[axis].is_none());
        let name = if missing { format!("({})", category.name) } else { category.name.clone() };
        let beside = if anchor == Anchor::Middle { 2.0 * room } else { room - (x - center.0).abs() };
        svg.text((x, y + 4.0), anchor, 11.0, "soft", &fitted(&name, 11.0, beside));
    }
}

fn needle(
    svg: &mut Svg,
    center: (f64, f64),
    radius: f64,
    scores: &[Option<CategoryScore>],
    colour: Option<&str>,
    name: &str,
) {
    let axes = scores.len();
    let corners = |of: &dyn Fn(&CategoryScore) -> f64| -> Vec<(f64, f64)> {
        // An axis without values has no corner: nothing is not zero.
        let known = scores.iter().enumerate().filter_map(|(axis, score)| Some((axis, score.as_ref()?)));
        known.map(|(axis, score)| place(center, radius, axis, axes, of(score).clamp(0.0, 1.0))).collect()
    };
    let means: Vec<String> = scores
        .iter()
        .map(|score| score.map_or("-".to_owned(), |score| format!("{:.3} ±{:.3}", score.mean, score.sd)))
        .collect();
    let tip = format!("{name}: {}", means.join(", "));
    if colour.is_none() {
        // A ring: along the outer edge, and back along the inner one.
        let outer = corners(&|score| score.mean + score.sd / 2.0);
        let inner = corners(&|score| score.mean - score.sd / 2.0);
        let mut band = outer.clone();
        band.extend(outer.first());
        band.extend(inner.first());
        band.extend(inner.iter().rev());
        svg.outline(&band, true, "class=\"band\"", "");
    }
    let mean = corners(&|score| score.mean);
    let look = match colour {
        Some(colour) => {
            format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\"")
        }
        None => "class=\"ink none\" stroke-width=\"1.6\" stroke-linejoin=\"round\"".to_owned(),
    };
    svg.outline(&mean, true, &look, &tip);
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
        let text = grid(&all, &named(&bundled(), "semantic").unwrap()).document();
        let (_, line) = text.rsplit_once("<path d=\"").unwrap();
        let corners = line.split('"').next().unwrap();
        assert!(corners.starts_with('M') && !corners.contains('L'), "only R-Ana has values: {corners}");
        assert!(text.contains(">(R-Syn)<"));
    }

    #[test]
    fn every_model_with_a_category_has_a_compass() {
        let all = matrix(&["a", "b"], &["RdfFriendCount-nt-1"], 5, |_, _, _| 0.5);
        let scheme = named(&bundled(), "semantic").unwrap();
        let text = grid(&all, &scheme).document();
        assert_eq!(text.matches("class=\"band\"").count(), 2);
        assert!(text.contains("R-Ana: RDF analytics, 1 tasks"));
        let both = overlay(&all, &scheme, &[0, 1]).document();
        assert!(both.contains(PALETTE[0]) && both.contains(PALETTE[1]));
        assert!(grid(&Dialogues::default(), &scheme).document().starts_with("<svg"));
    }
}

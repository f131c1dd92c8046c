//! Models × tasks: the mean of every cell as a colour and as a number.

use crate::figures::svg::{Anchor, SIZE, Svg};
use crate::figures::text::{fitted, widest};

use super::mixed;
use crate::analysis::cells::{statistics, totals};
use crate::analysis::placing::by_mean;
use crate::dialogues::Dialogues;
use crate::plot::{DrawnPlot, PagePlace, Plot};

/// See [`heat`].
pub static PLOT: Plot = Plot {
    heading: "Heat map",
    // The table of mean scores shows the same.
    place: |_| PagePlace::Nowhere,
    draw: |all, _, _| DrawnPlot::one("heat", heat(all)),
};

const ROW: f64 = 20.0;
const COLUMN: f64 = 36.0;
const NAMES_MAX: f64 = 260.0;
const LABELS_MAX: f64 = 300.0;

/// From 0 to 1: dark to light and blue to yellow. Readable with colour vision deficiencies, and ordered when printed in
/// grey.
const RAMP: [(f64, f64, f64); 5] = [
    (0.0, 32.0, 77.0),
    (64.0, 77.0, 107.0),
    (124.0, 123.0, 120.0),
    (188.0, 175.0, 111.0),
    (255.0, 234.0, 70.0),
];

/// The heat map, the best model on top.
fn heat(all: &Dialogues) -> Svg {
    let headings = all.headings();
    let totals = totals(all);
    let order: Vec<usize> = by_mean(all).iter().map(|place| place.column).collect();
    let left = 24.0 + widest(headings.iter().map(String::as_str), SIZE, NAMES_MAX);
    let top = 56.0 + widest(all.tasks.iter().map(|task| task.label.as_str()), SIZE, LABELS_MAX);
    let width = (left + COLUMN * (all.tasks.len() + 1) as f64 + 24.0).max(420.0);
    let height = top + ROW * totals.len() as f64;
    let mut svg = Svg::new(width, height, "Mean headline score by model and task");
    let x = |column: usize| left + COLUMN * column as f64;
    for (at, label) in all.tasks.iter().map(|task| task.label.as_str()).chain(["mean of tasks"]).enumerate() {
        let place = (x(at) + COLUMN / 2.0 + 4.0, top - 6.0);
        svg.turned_text(place, -90.0, Anchor::Start, SIZE, "", &fitted(label, SIZE, LABELS_MAX));
    }
    let cells = statistics(all);
    for (row, total) in order.iter().map(|&column| &totals[column]).enumerate() {
        let y = top + ROW * row as f64;
        let name = &headings[total.column];
        svg.text((left - 8.0, y + 14.0), Anchor::End, SIZE, "", &fitted(name, SIZE, NAMES_MAX));
        for cell in cells.iter().filter(|cell| cell.column == total.column) {
            let task = &all.tasks[cell.task];
            if let Some(summary) = cell.summary {
                let tip = format!(
                    "{name}, {} {}: {:.3}, n {} of {}",
                    task.label, task.headline, summary.mean, summary.n, cell.planned
                );
                square(&mut svg, (x(cell.task), y), summary.mean, &tip);
            } else {
                svg.text((x(cell.task) + COLUMN / 2.0, y + 14.0), Anchor::Middle, 10.0, "soft", "–");
            }
        }
        if let Some(mean) = total.mean {
            square(
                &mut svg,
                (x(all.tasks.len()), y),
                mean,
                &format!("{name}: {mean:.3} over {} tasks", total.tasks),
            );
        }
    }
    let marks = "dark blue: 0, yellow: 1; –: no score";
    svg.legend(&[Some(marks), mixed(all)].into_iter().flatten().collect::<Vec<_>>());
    svg
}

fn square(svg: &mut Svg, (x, y): (f64, f64), mean: f64, tip: &str) {
    let (colour, dark) = colour(mean);
    svg.rect((x + 0.5, y + 0.5), (COLUMN - 1.0, ROW - 1.0), &colour, 1.0, tip);
    let class = if dark { "on-dark" } else { "on-light" };
    svg.text((x + COLUMN / 2.0, y + 14.0), Anchor::Middle, 10.0, class, &format!("{mean:.2}"));
}

/// The colour of a share, and whether text on it must be light.
fn colour(share: f64) -> (String, bool) {
    let place = share.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let below = (place.floor() as usize).min(RAMP.len() - 2);
    let part = place - below as f64;
    let mix = |a: f64, b: f64| a + (b - a) * part;
    let (a, b) = (RAMP[below], RAMP[below + 1]);
    let (r, g, b) = (mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2));
    // Contrast with white is the higher one below this luminance (WCAG 2).
    let linear = |v: f64| if v <= 10.3 { v / 255.0 / 12.92 } else { ((v / 255.0 + 0.055) / 1.055).powf(2.4) };
    let luminance = 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    (format!("#{:02x}{:02x}{:02x}", r as u8, g as u8, b as u8), luminance < 0.179)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn every_cell_has_its_number_and_the_best_model_stands_on_top() {
        let all = matrix(&["low", "high"], &["s", "t"], 4, |model, _, _| model as f64 / 2.0);
        let text = heat(&all).document();
        assert_eq!(text.matches(">0.50<").count(), 3);
        assert!(text.find(">high<").unwrap() < text.find(">low<").unwrap());
    }

    #[test]
    fn the_ramp_rises_in_lightness() {
        let light = |share: f64| {
            let text = colour(share).0;
            (1..7).step_by(2).map(|at| u32::from_str_radix(&text[at..at + 2], 16).unwrap()).sum::<u32>()
        };
        assert!((0..20).all(|n| light(f64::from(n) / 20.0) < light(f64::from(n + 1) / 20.0)));
        assert!(colour(0.0).1 && !colour(1.0).1);
        assert_eq!(colour(7.0), colour(1.0));
    }
}

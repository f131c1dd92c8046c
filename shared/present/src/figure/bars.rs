//! Bar charts with one row per name: several bars side by side, or the parts of one bar.

use super::PALETTE;
use super::scale::{Scale, short, ticks};
use super::svg::{Anchor, SIZE, Svg};
use super::text::{fitted, widest, width};

const BAR: f64 = 14.0;
const GAP: f64 = 10.0;
const WIDTH: f64 = 900.0;
const TOP: f64 = 78.0;
const BELOW: f64 = 40.0;
const NAMES_MAX: f64 = 260.0;
const NUMBERS: f64 = 130.0;

/// How the values of a row are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// A bar each, one below the other.
    Beside,
    /// One bar of parts, which add up to 1.
    Stacked,
}

/// A row of bars: shares in [0, 1], each with its deviation, if it has one.
pub struct Row {
    pub name: String,
    pub values: Vec<Option<f64>>,
    pub deviations: Vec<Option<f64>>,
}

/// A bar chart of shares. `names` are the values of a row, `note` is printed below.
pub fn bars(title: &str, names: &[&str], rows: &[Row], stand: Stand, note: &str) -> Svg {
    let lines = if stand == Stand::Stacked { 1 } else { names.len().max(1) };
    let row_height = BAR * lines as f64 + GAP;
    let bottom = TOP + row_height * rows.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + BELOW, title);
    let left = 24.0 + widest(rows.iter().map(|row| row.name.as_str()), SIZE, NAMES_MAX);
    let x = Scale::linear((0.0, 1.0), (left, WIDTH - NUMBERS));
    let mut key = 12.0;
    for (name, colour) in names.iter().zip(PALETTE) {
        svg.rect((key, 34.0), (10.0, 10.0), colour, 0.85, "");
        svg.text((key + 14.0, 43.0), Anchor::Start, 11.0, "", name);
        key += 28.0 + width(name, 11.0);
    }
    for tick in ticks((0.0, 1.0)) {
        svg.line((x.at(tick), TOP - 6.0), (x.at(tick), bottom), "faint");
        svg.text(
            (x.at(tick), TOP - 12.0),
            Anchor::Middle,
            11.0,
            "soft",
            &format!("{} %", short(100.0 * tick)),
        );
    }
    for (number, row) in rows.iter().enumerate() {
        let top = TOP + row_height * number as f64 + GAP / 2.0;
        let middle = top + BAR * lines as f64 / 2.0;
        svg.text((left - 10.0, middle + 4.0), Anchor::End, SIZE, "", &fitted(&row.name, SIZE, NAMES_MAX));
        let mut begin = 0.0;
        for (part, value) in row.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let tip = format!("{}: {} {:.2} %", row.name, names.get(part).unwrap_or(&""), 100.0 * value);
            let colour = PALETTE[part % PALETTE.len()];
            let y = if stand == Stand::Stacked { top } else { top + BAR * part as f64 };
            let from = if stand == Stand::Stacked { begin } else { 0.0 };
            let length = x.at(from + value) - x.at(from);
            svg.rect((x.at(from), y + 1.0), (length, BAR - 2.0), colour, 0.85, &tip);
            begin += value;
            if stand == Stand::Beside {
                let deviation = row.deviations.get(part).copied().flatten();
                if let Some(deviation) = deviation {
                    let ends = (x.at(value - deviation), x.at(value + deviation));
                    svg.line((ends.0, y + BAR / 2.0), (ends.1, y + BAR / 2.0), "ink");
                }
                let text = match deviation {
                    Some(deviation) => format!("{:.2} ± {:.2} %", 100.0 * value, 100.0 * deviation),
                    None => format!("{:.2} %", 100.0 * value),
                };
                svg.text((WIDTH - 12.0, y + BAR - 3.0), Anchor::End, 11.0, "", &text);
            }
        }
    }
    let none =
        rows.iter().all(|row| row.values.iter().all(Option::is_none)).then_some("There are no values.");
    svg.legend(&[Some(note), none].into_iter().flatten().collect::<Vec<_>>());
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_a_box_and_what_is_not_known_is_none() {
        let row =
            |values: Vec<Option<f64>>| Row { name: "m".to_owned(), values, deviations: vec![Some(0.1)] };
        let rows = [row(vec![Some(0.25), Some(0.75)]), row(vec![None, Some(0.5)])];
        for stand in [Stand::Beside, Stand::Stacked] {
            let text = bars("T", &["a", "b"], &rows, stand, "note").document();
            // The ground, two of the key, three values.
            assert_eq!(text.matches("<rect").count(), 1 + 2 + 3, "{stand:?}");
            assert!(text.contains("m: b 75.00 %") && !text.contains("no values"));
        }
        assert!(bars("T", &["a"], &[row(vec![None])], Stand::Beside, "").document().contains("no values"));
    }
}

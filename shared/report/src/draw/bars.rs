//! Rows of marks, each with its name and its number: beside the marks, or above them where there is little room. And bar charts
//! made of such rows: several bars side by side, or the parts of one bar.

use crate::draw::PALETTE;
use crate::draw::scale::{Scale, short, ticks};
use crate::draw::svg::{Anchor, Breadth, SIZE, Svg};
use crate::draw::text::{fitted, widest, width};

const BAR: f64 = 14.0;
const GAP: f64 = 10.0;
/// Room for the lines of the key, and for the marks of the axis below them.
const KEY_TOP: f64 = 34.0;
const KEY_LINE: f64 = 16.0;
const AXIS: f64 = 28.0;
/// Room for numbers beside bars.
const NUMBERS: f64 = 118.0;

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
pub fn bars(
    (title, breadth): (&str, Breadth),
    names: &[&str],
    rows: &[Row],
    stand: Stand,
    note: &str,
) -> Svg {
    let lines = if stand == Stand::Stacked { 1 } else { names.len().max(1) };
    let mut key: Vec<(f64, f64)> = Vec::new();
    let mut end = (12.0, KEY_TOP);
    for name in names {
        let needs = 28.0 + width(name, 11.0);
        if end.0 > 12.0 && end.0 + needs > breadth.width() {
            end = (12.0, end.1 + KEY_LINE);
        }
        key.push(end);
        end.0 += needs;
    }
    let top = end.1 + KEY_LINE + AXIS;
    let row_height = BAR * lines as f64 + GAP;
    let mut places = Rows::new(breadth, (top, row_height, NUMBERS), rows.iter().map(|row| row.name.as_str()));
    if stand == Stand::Beside && breadth == Breadth::Narrow {
        places.ends.1 -= NUMBERS;
    }
    let bottom = places.bottom(rows.len());
    let mut svg = Svg::new(breadth.width(), bottom, title);
    let x = Scale::linear((0.0, 1.0), places.ends);
    for ((name, colour), (at, y)) in names.iter().zip(PALETTE).zip(key) {
        svg.rect((at, y), (10.0, 10.0), colour, 0.85, "");
        svg.text((at + 14.0, y + 9.0), Anchor::Start, 11.0, "", name);
    }
    for tick in ticks((0.0, 1.0)) {
        svg.line((x.at(tick), top - 6.0), (x.at(tick), bottom), "faint");
        svg.text(
            (x.at(tick), top - 12.0),
            Anchor::Middle,
            11.0,
            "soft",
            &format!("{} %", short(100.0 * tick)),
        );
    }
    for (number, row) in rows.iter().enumerate() {
        let top = places.top(number) + GAP / 2.0;
        places.label(&mut svg, number, &row.name, "");
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
                svg.text((breadth.width() - 12.0, y + BAR - 3.0), Anchor::End, 11.0, "", &text);
            }
        }
    }
    let none =
        rows.iter().all(|row| row.values.iter().all(Option::is_none)).then_some("There are no values.");
    svg.legend(&[Some(note), none].into_iter().flatten().collect::<Vec<_>>());
    svg
}

/// Maximum width of names beside marks, in pixels.
const NAMES_MAX: f64 = 260.0;

/// Room for a name above its marks, in pixels.
const ABOVE: f64 = 16.0;

/// Room at both sides, in pixels.
const ASIDE: f64 = 12.0;

/// Where rows of marks are.
pub struct Rows {
    /// The ends of the marks.
    pub ends: (f64, f64),
    top: f64,
    height: f64,
    above: f64,
    /// Where numbers end.
    right: f64,
}

impl Rows {
    /// Rows of this `height` below `top`; numbers take a part of the width.
    pub fn new<'a>(
        breadth: Breadth,
        (top, height, numbers): (f64, f64, f64),
        names: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let right = breadth.width() - ASIDE;
        let (ends, above) = match breadth {
            Breadth::Wide => ((2.0 * ASIDE + widest(names, SIZE, NAMES_MAX), right - numbers), 0.0),
            // Marks at the ends have some width of their own.
            Breadth::Narrow => ((ASIDE + 6.0, right - 6.0), ABOVE),
        };
        Self { ends, top, height, above, right }
    }

    /// The upper end of a row's marks.
    pub fn top(&self, row: usize) -> f64 {
        self.top + (self.height + self.above) * row as f64 + self.above
    }

    /// The middle of a row's marks.
    pub fn middle(&self, row: usize) -> f64 {
        self.top(row) + self.height / 2.0
    }

    /// The lower end of so many rows.
    pub fn bottom(&self, rows: usize) -> f64 {
        self.top + (self.height + self.above) * rows as f64
    }

    /// Writes the name of a row, and its number, if there is one.
    pub fn label(&self, svg: &mut Svg, row: usize, name: &str, number: &str) {
        if self.above > 0.0 {
            let y = self.top(row) - 3.0;
            let room = self.right - ASIDE - width(number, SIZE) - ASIDE;
            svg.text((ASIDE, y), Anchor::Start, SIZE, "", &fitted(name, SIZE, room));
            svg.text((self.right, y), Anchor::End, SIZE, "", number);
        } else {
            let y = self.middle(row) + 4.0;
            svg.text((self.ends.0 - 10.0, y), Anchor::End, SIZE, "", &fitted(name, SIZE, NAMES_MAX));
            svg.text((self.right, y), Anchor::End, SIZE, "", number);
        }
    }
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
            for breadth in [Breadth::Wide, Breadth::Narrow] {
                let text = bars(("T", breadth), &["a", "b"], &rows, stand, "note").document();
                // The ground, two of the key, three values.
                assert_eq!(text.matches("<rect").count(), 1 + 2 + 3, "{stand:?}");
                assert!(text.contains("m: b 75.00 %") && !text.contains("no values"));
            }
        }
        let none = bars(("T", Breadth::Wide), &["a"], &[row(vec![None])], Stand::Beside, "");
        assert!(none.document().contains("no values"));
    }

    #[test]
    fn names_stand_beside_marks_or_above_them() {
        for (breadth, above) in [(Breadth::Wide, 0.0), (Breadth::Narrow, ABOVE)] {
            let rows = Rows::new(breadth, (50.0, 20.0, 100.0), ["a", "a long name of a model"]);
            assert_eq!(rows.top(1), 50.0 + 20.0 + 2.0 * above);
            assert_eq!(rows.bottom(2), rows.top(1) + 20.0);
            let (left, right) = rows.ends;
            assert!(left < right && right <= breadth.width() && right - left > 300.0, "{left} {right}");
        }
    }
}

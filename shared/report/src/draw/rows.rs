//! Rows of marks, each with its name and its number: beside the marks, or above them where there is little room.

use super::svg::{Anchor, Breadth, SIZE, Svg};
use super::text::{fitted, widest};

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
            let room = self.right - ASIDE - super::text::width(number, SIZE) - ASIDE;
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

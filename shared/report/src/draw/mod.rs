//! What figures are drawn with, as SVG: axes, bars, texts that fit. The layout is our own code: it draws only lines, boxes, circles
//! and text. Nothing here knows models.
//!
//! A figure follows the reader's choice of light or dark, and uses colours that people with a colour vision deficiency can
//! distinguish (Okabe and Ito's palette).

pub mod bars;
pub mod scale;
pub mod svg;
pub mod text;

pub use svg::{Breadth, Svg, style};

/// A figure for wide pages and for narrow ones, of which a page shows the one that fits.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub wide: Svg,
    pub narrow: Svg,
}

impl Drawn {
    /// Draws it twice.
    pub fn of(draw: impl Fn(Breadth) -> Svg) -> Self {
        Self { wide: draw(Breadth::Wide), narrow: draw(Breadth::Narrow) }
    }
}

/// Okabe and Ito's colours that are visible on light and on dark backgrounds.
pub const PALETTE: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#999999"];

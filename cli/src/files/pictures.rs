//! Plots as PNG, where this binary was built with the feature `png`.

use report::plot::{Ground, Svg};

/// Pixels per unit of a plot: enough for print and for screens with fine pixels.
#[cfg(feature = "png")]
const SCALE: f32 = 2.0;

/// Grounds that a plot is drawn on, each with the ending of its file.
pub const GROUNDS: [(Ground, &str); 2] = [(Ground::Light, "png"), (Ground::Dark, "dark.png")];

/// What draws plots.
#[cfg(feature = "png")]
pub struct Pictures(raster::Painter);

#[cfg(feature = "png")]
impl Pictures {
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(raster::Painter::new()))
    }

    /// A plot as PNG.
    pub fn draw(&self, plot: &Svg, ground: Ground) -> anyhow::Result<Vec<u8>> {
        Ok(self.0.png(&plot.on(ground), SCALE)?)
    }
}

/// There is nothing that draws plots.
#[cfg(not(feature = "png"))]
pub enum Pictures {}

#[cfg(not(feature = "png"))]
impl Pictures {
    pub fn new() -> anyhow::Result<Self> {
        Err(crate::kit::exit_code::usage!(
            "this kgfleet was built without PNG: `cargo install --path cli --locked --features png` builds one that writes \
             it; --plots without --png writes SVG"
        ))
    }

    /// Is never called.
    pub fn draw(&self, _plot: &Svg, _ground: Ground) -> anyhow::Result<Vec<u8>> {
        match *self {}
    }
}

//! Pictures of drawings: SVG in, PNG out, without any library or font of the system.
//!
//! Words are drawn with one bundled font, which has the Latin, Greek, Cyrillic, Arabic and mathematical characters and many
//! more; what it lacks becomes an empty box. Style sheets that follow their reader mean nothing here: a drawing comes with
//! the colours that it is to have.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::roxmltree::{Document, Node};
use resvg::usvg::{FontResolver, ImageHrefResolver, Options, Tree, fontdb};

/// Pixels of a picture at most; each takes 4 bytes of memory while it is drawn, and often less than one on disk.
pub const PIXELS_MAX: u64 = 64 << 20;

/// Length of a drawing at most, in bytes.
pub const DRAWING_BYTES_MAX: usize = 64 << 20;

/// Characters of a text at most. The time that a text takes grows with the square of its length, and no longer one is
/// readable in a picture.
pub const TEXT_MAX: usize = 10_000;

/// Pixels per unit of a drawing at most.
pub const SCALE_MAX: f32 = 16.0;

/// The name of the bundled font.
pub const FONT_NAME: &str = "DejaVu Sans";

static FONT: &[u8] = include_bytes!("../../../third_party/fonts/DejaVuSans.ttf");

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Not the SVG that can be drawn here.
    #[error("the drawing cannot be read: {0}")]
    Unreadable(String),
    /// More than [`DRAWING_BYTES_MAX`].
    #[error("the drawing has {0} bytes, more than the {DRAWING_BYTES_MAX} allowed")]
    TooLong(usize),
    /// A text of more than [`TEXT_MAX`] characters.
    #[error("a text of the drawing has {0} characters, more than the {TEXT_MAX} allowed")]
    Text(usize),
    /// More than [`PIXELS_MAX`], or none at all.
    #[error(
        "a picture of {width} x {height} pixels cannot be drawn: it must have between 1 and {PIXELS_MAX}"
    )]
    Size {
        /// Pixels from left to right.
        width: f32,
        /// Pixels from top to bottom.
        height: f32,
    },
    /// Not between 0 and [`SCALE_MAX`].
    #[error("a scale of {0} is not between 0 and {SCALE_MAX}")]
    Scale(f32),
    /// The encoder failed.
    #[error("cannot write PNG: {0}")]
    Unwritable(String),
}

/// Draws pictures; the font is loaded once.
pub struct Painter {
    options: Options<'static>,
}

impl Default for Painter {
    fn default() -> Self {
        Self::new()
    }
}

impl Painter {
    /// Loads the font.
    pub fn new() -> Self {
        let mut options = Options {
            font_family: FONT_NAME.to_owned(),
            // Whatever face a drawing wishes for, there is one.
            font_resolver: FontResolver {
                select_font: Box::new(|_, fonts| fonts.faces().next().map(|face| face.id)),
                select_fallback: Box::new(|_, _, _| None),
            },
            // Drawings fetch nothing, from no disk either.
            image_href_resolver: ImageHrefResolver {
                resolve_data: Box::new(|_, _, _| None),
                resolve_string: Box::new(|_, _| None),
            },
            ..Options::default()
        };
        options.fontdb_mut().load_font_source(fontdb::Source::Binary(Arc::new(FONT)));
        Self { options }
    }

    /// The picture of a drawing, as PNG with `scale` pixels per unit, rounded up to whole ones. Where the drawing has no
    /// ground, the picture lets through what is behind it.
    ///
    /// # Errors
    /// Not SVG, or it declares entities; too large, see [`PIXELS_MAX`], [`DRAWING_BYTES_MAX`], [`TEXT_MAX`] and
    /// [`SCALE_MAX`].
    pub fn png(&self, svg: &str, scale: f32) -> Result<Vec<u8>, Error> {
        if !(scale > 0.0 && scale <= SCALE_MAX) {
            return Err(Error::Scale(scale));
        }
        if svg.len() > DRAWING_BYTES_MAX {
            return Err(Error::TooLong(svg.len()));
        }
        // The parser refuses document types, so no entity grows here.
        let document = Document::parse(svg).map_err(|error| Error::Unreadable(error.to_string()))?;
        let long = document.descendants().filter(|node| node.has_tag_name("text")).find_map(|text| {
            let parts = text.descendants().filter(Node::is_text).filter_map(|node| node.text());
            let length = parts.map(|part| part.chars().count()).sum();
            (length > TEXT_MAX).then_some(length)
        });
        if let Some(length) = long {
            return Err(Error::Text(length));
        }
        let tree = Tree::from_xmltree(&document, &self.options)
            .map_err(|error| Error::Unreadable(error.to_string()))?;
        let (width, height) = ((tree.size().width() * scale).ceil(), (tree.size().height() * scale).ceil());
        let pixels = f64::from(width) * f64::from(height);
        let mut picture =
            if pixels <= PIXELS_MAX as f64 { Pixmap::new(width as u32, height as u32) } else { None }
                .ok_or(Error::Size { width, height })?;
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut picture.as_mut());
        picture.encode_png().map_err(|error| Error::Unwritable(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(size: &str, body: &str) -> String {
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" {size}>{body}</svg>")
    }

    fn drawn(svg: &str) -> Pixmap {
        Pixmap::decode_png(&Painter::new().png(svg, 2.0).unwrap()).unwrap()
    }

    #[test]
    fn every_face_is_the_bundled_one_and_what_it_lacks_takes_room_all_the_same() {
        let inked = |family: &str, words: &str| {
            let text =
                format!("<text x=\"5\" y=\"20\" font-size=\"12\" font-family=\"{family}\">{words}</text>");
            let picture = drawn(&drawing("width=\"100\" height=\"30\"", &text));
            assert_eq!((picture.width(), picture.height()), (200, 60));
            picture.pixels().iter().filter(|pixel| pixel.alpha() > 0).count()
        };
        let here = inked(FONT_NAME, "Qwen 2.5");
        assert!(here > 100);
        assert_eq!(here, inked("system-ui, 'No Such Face'", "Qwen 2.5"));
        assert!(inked("serif", "模型") > 20);
    }

    #[test]
    fn what_is_too_large_or_not_svg_is_an_error() {
        let error = |svg: &str, scale: f32| Painter::new().png(svg, scale).unwrap_err();
        let square = |side: &str| drawing(&format!("width=\"{side}\" height=\"{side}\""), "");
        assert_eq!(error(&square("9000"), 1.0), Error::Size { width: 9000.0, height: 9000.0 });
        assert!(matches!(error(&square("1e30"), 1.0), Error::Size { .. } | Error::Unreadable(_)));
        assert!(matches!(error(&square("0"), 1.0), Error::Unreadable(_)));
        assert!(matches!(error("<svg", 1.0), Error::Unreadable(_)));
        assert!(matches!(error("<html/>", 1.0), Error::Unreadable(_)));
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, SCALE_MAX + 1.0] {
            assert!(matches!(error(&square("9"), scale), Error::Scale(_)), "{scale}");
        }
        let text = |length: usize| {
            drawing("width=\"9\" height=\"9\"", &format!("<text>{}</text>", "a".repeat(length)))
        };
        assert_eq!(error(&text(TEXT_MAX + 1), 1.0), Error::Text(TEXT_MAX + 1));
        let bomb = format!("<!DOCTYPE svg [<!ENTITY a \"aaaaaaaa\">]>{}", drawing("", "<text>&a;</text>"));
        assert!(matches!(error(&bomb, 1.0), Error::Unreadable(_)));
    }

    #[test]
    fn a_drawing_fetches_nothing() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/red.svg");
        let red = drawing("width=\"9\" height=\"9\"", "<rect width=\"9\" height=\"9\" fill=\"red\"/>");
        assert_eq!(std::fs::read_to_string(file).unwrap().trim_end(), red);
        let inline = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHdpZHRoPSI5IiBoZWlnaHQ9IjkiPjxyZWN0IHdpZHRoPSI5IiBoZWlnaHQ9IjkiIGZpbGw9InJlZCIvPjwvc3ZnPg==";
        for href in [file, inline] {
            let image = format!("<image href=\"{href}\" width=\"9\" height=\"9\"/>");
            let picture = drawn(&drawing("width=\"9\" height=\"9\"", &image));
            assert!(picture.pixels().iter().all(|pixel| pixel.alpha() == 0), "{href}");
        }
    }
}

//! Writes SVG. Texts from outside are escaped here and nowhere else.

use std::fmt::Write as _;

use super::text::{fitted, wrapped};
use crate::table::printable;

/// Size of ordinary text, in pixels.
pub const SIZE: f64 = 12.0;

/// Colours of background, text and lines on a light background and on a dark one, as CSS variables.
const LIGHT: &str =
    "--paper:#fff;--ink:#1a1a1a;--soft:#595959;--line:#c8c8c8;--faint:#ececec;--accent:#0072b2";
const DARK: &str =
    "--paper:#16181b;--ink:#ececec;--soft:#a8a8a8;--line:#4a4d52;--faint:#2a2d31;--accent:#56b4e9";

/// The style rules of drawings.
const RULES: &str = "\
.kgf{font-family:system-ui,'Segoe UI','DejaVu Sans',Arial,sans-serif;background:var(--paper)}\
.kgf .paper{fill:var(--paper)}.kgf text{fill:var(--ink)}.kgf .soft{fill:var(--soft)}\
.kgf .line{stroke:var(--line)}.kgf .faint{stroke:var(--faint)}.kgf .ink{stroke:var(--ink)}.kgf .accent{stroke:var(--accent)}\
.kgf .band{fill:var(--accent);fill-opacity:.18}.kgf .none{fill:none}\
.kgf .halo{stroke:var(--paper);stroke-width:3;stroke-linejoin:round;paint-order:stroke}";

/// The style of plots, light or dark as the reader prefers. A page with plots contains it once.
pub fn style() -> String {
    format!(".kgf{{{LIGHT}}}@media screen and (prefers-color-scheme:dark){{.kgf{{{DARK}}}}}{RULES}")
}

/// How much room a figure has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breadth {
    /// A screen, or paper.
    Wide,
    /// A phone held upright.
    Narrow,
}

impl Breadth {
    /// The width of a figure, in pixels.
    pub fn width(self) -> f64 {
        match self {
            Self::Wide => 900.0,
            Self::Narrow => 360.0,
        }
    }
}

/// Which point of a text is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing.
#[derive(Clone, Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    /// The description for people who cannot see it.
    title: String,
    body: String,
}

impl Svg {
    /// An empty drawing with its title above.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let mut svg = Self { width, height, title: title.to_owned(), body: String::new() };
        // Bold letters are wider by about a tenth.
        svg.text((12.0, 22.0), Anchor::Start, 15.0, "bold", &fitted(title, 16.5, width - 24.0));
        svg
    }

    /// The drawing as a file.
    pub fn document(&self) -> String {
        self.write(&format!("<style>{}</style>", style()))
    }

    /// The drawing as a part of a page that contains [`style`].
    pub fn inline(&self) -> String {
        self.write("")
    }

    fn write(&self, style: &str) -> String {
        let (width, height, title) = (self.width, self.height, escaped(&self.title));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"kgf\" role=\"img\" width=\"{width:.0}\" \
             height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" aria-label=\"{title}\">{style}\
             <rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\"/>{}</svg>\n",
            self.body
        )
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    /// Draws marks of a model, which a page can hide together.
    pub fn of_model(&mut self, name: &str, draw: impl FnOnce(&mut Self)) {
        let name = escaped(name);
        self.put(format_args!("<g data-model=\"{name}\">"));
        draw(self);
        self.put(format_args!("</g>"));
    }

    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    /// A line of a colour.
    pub fn stroke(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str, width: f64) {
        self.put(format_args!(
            "<line stroke=\"{colour}\" stroke-width=\"{width}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    /// A filled box, with a tooltip.
    pub fn rect(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        fill: &str,
        opacity: f64,
        tip: &str,
    ) {
        let tip = tooltip(tip);
        self.put(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\" \
             fill-opacity=\"{opacity}\">{tip}</rect>"
        ));
    }

    /// A circle: filled with a colour, or open if there is none.
    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, fill: Option<&str>, tip: &str) {
        let tip = tooltip(tip);
        match fill {
            Some(fill) => self.put(format_args!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\">{tip}</circle>"
            )),
            None => self.put(format_args!(
                "<circle class=\"ink none\" stroke-width=\"1.6\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">{tip}</circle>"
            )),
        }
    }

    /// Small crosses of this size in one path.
    pub fn crosses(&mut self, places: &[(f64, f64)], reach: u8, colour: &str) {
        if places.is_empty() {
            return;
        }
        let mut path = String::new();
        for (x, y) in places {
            let reach = f64::from(reach);
            // Writing to a String cannot fail.
            let _ = write!(
                path,
                "M{:.1} {:.0}l{reach} {reach}m0-{reach}l-{reach} {reach}",
                x - reach / 2.0,
                y - reach / 2.0
            );
        }
        self.put(format_args!(
            "<path d=\"{path}\" stroke=\"{colour}\" stroke-opacity=\".7\" fill=\"none\"/>"
        ));
    }

    /// A closed outline, or an open line.
    pub fn outline(&mut self, places: &[(f64, f64)], closed: bool, attributes: &str, tip: &str) {
        let mut path = String::new();
        for (number, (x, y)) in places.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if number == 0 { 'M' } else { 'L' });
        }
        if closed {
            path.push('Z');
        }
        let tip = tooltip(tip);
        self.put(format_args!("<path d=\"{path}\" {attributes}>{tip}</path>"));
    }

    /// A text. `class` is empty, `soft`, `bold`, or another class of [`style`].
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, size: f64, class: &str, text: &str) {
        self.turned_text((x, y), 0.0, anchor, size, class, text);
    }

    /// A text turned by some degrees around its position.
    pub fn turned_text(
        &mut self,
        (x, y): (f64, f64),
        degrees: f64,
        anchor: Anchor,
        size: f64,
        class: &str,
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let turn = if degrees == 0.0 {
            String::new()
        } else {
            format!(" transform=\"rotate({degrees:.0} {x:.1} {y:.1})\"")
        };
        let look = match class {
            "" => String::new(),
            "bold" => " font-weight=\"600\"".to_owned(),
            class => format!(" class=\"{class}\""),
        };
        let text = escaped(text);
        self.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{look}{turn}>{text}</text>"
        ));
    }

    /// Text that explains the marks, in room that is added below.
    pub fn legend(&mut self, lines: &[&str]) {
        self.height += 6.0;
        let most = self.width - 24.0;
        for line in lines.iter().flat_map(|line| wrapped(line, 11.0, most)) {
            self.height += 15.0;
            self.text((12.0, self.height - 2.0), Anchor::Start, 11.0, "soft", &line);
        }
        self.height += 8.0;
    }

    fn put(&mut self, part: std::fmt::Arguments<'_>) {
        let _ = self.body.write_fmt(part);
    }
}

fn tooltip(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(text)) }
}

/// A text as XML, without characters that are invalid in XML or steer a terminal.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for c in printable(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Everything else that is no character of XML is spelled out already.
            '\u{fffe}' | '\u{ffff}' => safe.push(char::REPLACEMENT_CHARACTER),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place() {
        let hostile = "\"><script>alert(1)</script>&\u{1b}\u{202e}\u{fffe}\u{ffff}";
        let mut svg = Svg::new(2000.0, 10.0, hostile);
        svg.text((0.0, 0.0), Anchor::Start, 1.0, "", hostile);
        svg.of_model(hostile, |svg| svg.rect((0.0, 0.0), (1.0, 1.0), "#fff", 1.0, hostile));
        for written in [svg.document(), svg.inline()] {
            assert!(
                !written.contains("<script") && !written.contains('\u{1b}') && !written.contains('\u{202e}')
            );
            assert!(!written.contains(['\u{fffe}', '\u{ffff}']), "no XML: {written}");
            assert_eq!(written.matches("&lt;script&gt;").count(), 5, "label, title, text, model and tooltip");
        }
    }
}

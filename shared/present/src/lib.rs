//! What people and their programs are shown, whatever it is about.
//!
//! [`table`] is headings and rows of typed cells, written as text, Markdown, CSV, JSON and XLSX. [`figure`] draws: axes, bars,
//! texts that fit, as SVG. [`redaction`] is what stands for a text that may not be shown. Nothing here knows runs, models or dialogues.

pub mod figure;
pub mod redaction;
pub mod table;

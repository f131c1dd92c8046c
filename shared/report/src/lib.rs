//! Computes statistics, tables, comparisons and plots from dialogues.
//!
//! [`dialogues`] is the table that everything is computed from; [`input`] fills it from runs and from LLM-KG-Bench
//! result files. [`stats`] has the statistical methods and knows no models; [`analysis`] applies them to models.
//! [`views`] makes each table, [`figures`] draws them, and [`html`] makes a page of everything; its parts also make the live page of a
//! coordinator. [`draw`] is what figures are drawn with, [`table`] headings and rows of typed cells, written as text, Markdown, CSV, JSON and XLSX. [`costs`] has prices,
//! and [`export`] writes winning records as files.
//!
//! Only [`input`] and [`export`] do IO, and they read only what they are given. A new table is a file in [`views`], a new plot one in
//! [`figures`].

pub mod analysis;
pub mod costs;
pub mod details;
pub mod dialogues;
pub mod draw;
pub mod export;
pub mod figures;
pub mod html;
pub mod input;
pub mod stats;
pub mod table;
pub mod tables;
pub mod views;
pub mod words;

pub use dialogues::Dialogues;

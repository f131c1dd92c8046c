//! Computes statistics, tables, comparisons and plots from dialogues.
//!
//! [`dialogues`] is the table that everything is computed from; [`input`] fills it from runs and from LLM-KG-Bench
//! result files. [`stats`] has the statistical methods and knows no models; [`analysis`] applies them to models.
//! [`views`] makes each table, [`figures`] draws, and [`html`] makes a page of everything; its parts also make the live page of a
//! coordinator. How tables are written and what figures are drawn with is in `present`.
//!
//! Only [`input`] does IO, and it reads only what it is given. A new table is a file in [`views`], a new plot one in
//! [`figures`].

pub mod analysis;
pub mod details;
pub mod dialogues;
pub mod figures;
pub mod html;
pub mod input;
mod labels;
pub mod names;
pub mod plot;
pub mod setups;
pub mod summaries;
pub mod tables;
pub mod view;
pub mod views;
pub mod words;

pub use dialogues::Dialogues;

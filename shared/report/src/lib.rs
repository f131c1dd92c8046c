//! From records to insight: statistics, tables, comparisons and plots, computed from dialogues.
//!
//! [`dialogues`] is the one table that everything starts from; [`input`] fills it from runs and from LLM-KG-Bench result
//! files. [`stats`] knows numbers and nothing of models; [`analysis`] answers questions about models with it. [`table`] is
//! what comes out, as text, Markdown, CSV, JSON and XLSX, and [`views`] are the tables that there are. [`plot`] draws, and
//! [`html`] makes a page of it all; its parts also make the live page of a coordinator.
//!
//! No part of this crate does IO except [`input`], which reads what it is given.

pub mod analysis;
pub mod details;
pub mod dialogues;
pub mod hallucination;
pub mod html;
pub mod input;
pub mod names;
pub mod plot;
pub mod stats;
pub mod summaries;
pub mod table;
pub mod views;
pub mod words;

pub use dialogues::Dialogues;

//! The tables of reports, made of [`Dialogues`](crate::Dialogues).

pub mod combined;
pub mod comparison;
pub mod preferences;
pub mod scores;
pub mod statistics;

pub use scores::{Grid, Sort};

//! The tables of reports, made of [`Dialogues`](crate::Dialogues).

pub mod card;
pub mod combined;
pub mod comparison;
pub mod dialogues;
pub mod hallucination;
pub mod preferences;
pub mod scores;
pub mod statistics;

pub use scores::{Grid, Sort};

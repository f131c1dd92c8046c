//! The tables of reports, made of [`Dialogues`](crate::Dialogues), and those of a coordinator's runs and workers.

pub mod card;
pub mod combined;
pub mod comparison;
pub mod dialogues;
pub mod fleet;
pub mod groups;
pub mod hallucination;
pub mod preferences;
pub mod scores;
pub mod sources;
pub mod statistics;

pub use scores::{Grid, Sort};

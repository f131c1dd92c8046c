//! Makes the tables of reports from [`Dialogues`](crate::Dialogues), and those of a coordinator's runs and workers. One
//! file for each table or group of tables.

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

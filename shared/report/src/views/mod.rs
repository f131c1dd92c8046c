//! Makes the tables of reports from [`Dialogues`](crate::Dialogues), and those of a coordinator's runs and workers. One
//! file for each table or group of tables.

pub mod combined;
pub mod configuration;
pub mod dialogues;
pub mod groups;
pub mod preferences;
pub mod scores;
pub mod statistics;

pub use scores::{Grid, Sort};

//! Finds the configuration that a command line means. It contacts nothing.

pub mod addresses;
pub mod choose;

//! Finds the configuration that a command line means. It contacts nothing.

pub mod at_endpoint;
pub mod choose;

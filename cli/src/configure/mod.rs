//! Which configuration is meant.

pub mod addresses;
pub mod choose;

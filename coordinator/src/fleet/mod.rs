//! Workers: what they report, what they hold, and what they are granted.

pub(crate) mod backlog;
pub(crate) mod exchange;
pub(crate) mod grants;
pub mod matching;
pub(crate) mod reservations;
pub(crate) mod workers;

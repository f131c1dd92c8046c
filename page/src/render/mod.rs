//! The HTML of pages. The templates escape every text from elsewhere, and remove control characters or make them
//! visible.

pub(crate) mod benchmark;
pub(crate) mod board;
pub(crate) mod dialogues;
pub(crate) mod frame;
pub(crate) mod lists;

//! Answers to questions about models, tasks and formats.
//!
//! | question | where |
//! |---|---|
//! | how did a model do on a task? | [`cells`] |
//! | does it prefer Turtle or JSON-LD? | [`preference`] |
//! | what do several tasks together say? | [`scheme`], [`combined`] |
//! | which models lead? | [`leaders`] |
//! | do two runs or models differ? | [`compare`] |
//! | do groups of tasks differ? | [`groups`] |

pub mod cells;
pub mod combined;
pub mod compare;
pub mod groups;
pub mod leaders;
pub mod preference;
pub mod scheme;

/// The level of tests: where nothing is the matter, one in twenty finds something all the same.
pub const ALPHA: f64 = 0.05;

/// The level that published tables print in bold.
pub const ALPHA_STRONG: f64 = 0.01;

//! Answers to questions about models, tasks and formats.
//!
//! | question | where |
//! |---|---|
//! | how did a model do on a task? | [`cells`] |
//! | what is its mean over all tasks, and how sure is that? | [`mean_of_tasks`] |
//! | does it prefer Turtle or JSON-LD? | [`preference`] |
//! | what do several tasks together say? | [`scheme`], [`combined`] |
//! | in which order do models stand? | [`placing`] |
//! | which models lead? | [`leaders`] |
//! | which place may a model have? | [`ranks`] |
//! | do two runs or models differ? | [`compare`], on the questions that both [answered](answers) |
//! | do groups of tasks differ? | [`groups`] |
//! | what did a model cost? | [`spending`] |

pub mod answers;
pub mod cells;
pub mod combined;
pub mod compare;
pub mod groups;
pub mod leaders;
pub mod mean_of_tasks;
pub mod placing;
pub mod preference;
pub mod ranks;
pub mod scheme;
pub mod spending;

/// The level of tests: where nothing is the matter, one in twenty finds something all the same.
pub const ALPHA: f64 = 0.05;

/// The level that published tables print in bold.
pub const ALPHA_STRONG: f64 = 0.01;

//! What several tables and plots need to know about models; what one table answers stands beside it in [`views`](crate::views).
//!
//! | question | where |
//! |---|---|
//! | how did a model do on a task, what is its mean over all tasks, and how sure is that? | [`cells`] |
//! | what do several tasks together say? | [`scheme`] |
//! | in which order do models stand, and which place may a model have? | [`placing`] |
//! | do two runs or models differ on the questions that both answered? | [`compare`] |

pub mod cells;
pub mod compare;
pub mod placing;
pub mod scheme;

/// The level of tests: where nothing is the matter, one in twenty finds something all the same.
pub const ALPHA: f64 = 0.05;

/// The level that published tables print in bold.
pub const ALPHA_STRONG: f64 = 0.01;

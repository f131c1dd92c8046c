//! Statistics of plain numbers. [`describe`] sums up a sample, [`interval`] says how sure a mean of tasks is, [`hypothesis`] compares samples, [`holm`] corrects for many
//! comparisons, [`effect`] says how large a difference is.
//!
//! Every function is defined for every input: where a statistic does not exist (a deviation of one value, a test of two
//! equal constants), it is `None` or not a number, as its documentation says, and never a panic.

pub mod describe;
pub mod effect;
pub mod holm;
pub mod hypothesis;
pub mod interval;

pub use describe::SampleSummary;
pub use holm::holm;
pub use hypothesis::{TTest, Wilcoxon, welch, wilcoxon};
pub use interval::{Estimate, Interval, Need, TaskValues, ValueRange, estimate};

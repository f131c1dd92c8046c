//! Statistics of plain numbers. [`describe`] sums up a sample, [`interval`] says how sure a mean of tasks is, [`share`] what a sample
//! says of a share, [`hypothesis`] compares samples and [`permutation`] groups that should be alike, [`holm`] corrects for many
//! comparisons, [`effect`] says how large a difference is.
//!
//! Every function is defined for every input: where a statistic does not exist (a deviation of one value, a test of two
//! equal constants), it is `None` or not a number, as its documentation says, and never a panic.

pub mod describe;
pub mod effect;
pub mod holm;
pub mod hypothesis;
pub mod interval;
pub mod permutation;
pub mod share;

pub use describe::Summary;
pub use holm::holm;
pub use hypothesis::{TTest, Wilcoxon, welch, wilcoxon};
pub use interval::{Estimate, Interval, Need, TaskValues, ValueRange, estimate};
pub use permutation::{GroupScore, UnlikeGroup, departures};

//! Statistics of plain numbers. [`samples`] sums up samples and compares them, [`interval`] says how sure a mean of tasks is.
//!
//! Every function is defined for every input: where a statistic does not exist (a deviation of one value, a test of two
//! equal constants), it is `None` or not a number, as its documentation says, and never a panic.

pub mod interval;
pub mod samples;

pub use interval::{Estimate, Interval, Need, TaskValues, ValueRange, estimate, mean_and_p};
pub use samples::{SampleSummary, TTest, TwoSamples, Wilcoxon, holm, welch, wilcoxon};

//! Published result files, read and written back.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod conformance;
mod result_files;

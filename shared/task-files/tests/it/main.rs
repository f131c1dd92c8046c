//! Task files as authors write them, and the declared twins of built-in tasks.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod authoring;
mod compiling;
mod twin;
mod twins;

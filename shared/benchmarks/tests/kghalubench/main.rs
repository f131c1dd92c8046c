//! KGHaluBench on whole graphs and on frozen numbers of other libraries.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod endpoint;
mod popularity;
mod reference;
mod study;

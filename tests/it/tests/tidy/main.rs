//! Rules that hold for the whole repository and that no compiler checks: which way dependencies point ([`dependencies`]),
//! what files look like ([`files`]), whether documents are linked ([`documentation`]) and name what exists ([`claims`]),
//! and the Kubernetes chart, by its own checks ([`chart`]).
//!
//! Tests of the binary are in `cli/tests`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod chart;
mod claims;
mod dependencies;
mod documentation;
mod files;
mod workspace;

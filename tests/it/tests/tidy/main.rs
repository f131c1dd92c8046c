//! Rules that hold for the whole repository and that no compiler checks: what members may depend on ([`dependencies`]), who
//! speaks HTTP to others ([`clients`]), what files look like ([`files`]), whether documents are linked ([`documentation`]) and
//! name what exists ([`claims`], [`limits`]), what the test runner says ([`runner`]), and the Kubernetes chart, by its own
//! checks ([`chart`]).
//!
//! Tests of the binary are in `cli/tests`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod chart;
mod claims;
mod clients;
mod dependencies;
mod documentation;
mod files;
mod limits;
mod runner;
mod workspace;

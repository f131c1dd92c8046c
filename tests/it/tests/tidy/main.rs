//! Rules that hold for the whole repository and that no compiler checks: which way dependencies point ([`dependencies`]),
//! who speaks HTTP to others ([`clients`]), what files look like ([`files`]), which files import which ([`imports`]), where types ([`types`]) and kinds ([`kinds`])
//! belong, whether documents are linked ([`documentation`]) and name what exists ([`claims`]), and the Kubernetes chart, by
//! its own checks ([`chart`]). What breaks a rule of structure today is on its list in the folder `allowed`
//! ([`exceptions`]).
//!
//! Tests of the binary are in `cli/tests`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod chart;
mod claims;
mod clients;
mod dependencies;
mod documentation;
mod exceptions;
mod files;
mod imports;
mod kinds;
mod limits;
mod runner;
mod source;
mod types;
mod workspace;

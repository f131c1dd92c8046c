//! Reports as files: in a browser, against frozen figures, and against the published ones.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod browsing;
mod frozen;
mod published;

//! Shapes against pySHACL's and W3C's verdicts.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod pyshacl;
mod w3c;

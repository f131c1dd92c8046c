//! Connectors against servers that send exact bytes.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod hosted;
mod judges;
mod keys;
mod openai;
mod quirks;
mod redirects;
mod support;

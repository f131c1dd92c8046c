//! The simulator over HTTP, as clients of vLLM meet it.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod determinism;
mod faults;
mod judges;
mod latency;
mod support;
mod wire;

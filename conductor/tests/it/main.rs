//! The conductor against a Kubernetes API of the tests, and the chart's objects that it starts.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod chart;
mod over_http;

//! The wire, spoken by real clients and servers over loopback, and by others that mean no good.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod adversary;
mod api;
mod generated;
mod loopback;
mod protocol;
mod samples;

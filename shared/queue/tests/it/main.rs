//! One suite for every queue: in memory, on Redis, on a Redis Cluster; and what one leader leaves the next.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod conformance;
mod handover;
mod memory;
mod redis;
mod redis_cluster;

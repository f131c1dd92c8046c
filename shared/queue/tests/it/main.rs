//! One suite for every queue: in memory, on Redis, on a Redis Cluster.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod memory;
mod redis;
mod redis_cluster;

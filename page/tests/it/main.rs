//! The page over a real coordinator, request by request; `adversary` alone uses sockets.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod admission;
mod adversary;
mod browsing;
mod moving;
mod pages;
mod steering;
mod taking;
mod world;

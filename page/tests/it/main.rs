//! The page over a real coordinator, request by request, without sockets.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod browser;
mod browsing;
mod door;
mod looking;
mod moving;
mod steering;
mod world;

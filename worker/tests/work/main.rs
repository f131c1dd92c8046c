//! Whole workers against a coordinator that the test controls.

#![allow(clippy::unwrap_used, reason = "a failure of a test may panic wherever it happens")]

mod coordinator;
mod delivery;
mod ending;
mod harness;
mod leases;
mod model;
mod outages;
mod servers;

//! Whole workers against a coordinator that the test controls.

#![allow(clippy::unwrap_used, reason = "a failure of a test may panic wherever it happens")]

mod at_work;
mod delivery;
mod ending;
mod leases;
mod outages;
mod servers;
mod until_done;

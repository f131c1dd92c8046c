//! The packs that come with kgfleet, and the import of published exercises.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod builtin;
mod import;
mod import_conformance;

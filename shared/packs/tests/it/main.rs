//! The packs that come with kgfleet, the import of published exercises, task files as authors write them, and the declared twins of
//! built-in tasks.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod authoring;
mod builtin;
mod compiling;
mod import;
mod import_conformance;
mod twin;
mod twins;

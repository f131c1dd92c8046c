//! Whole runs with workers that are played by the tests: no models, no sockets, no waiting.

mod access;
mod cluster;
mod extending;
mod failures;
mod generations;
mod growing;
mod lifecycle;
mod local;
mod mishaps;
mod pipelines;
mod sealed;
mod worker;

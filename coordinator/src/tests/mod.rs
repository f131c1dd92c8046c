//! Whole runs with workers that are played by the tests: no models, no sockets, no waiting.

mod access;
mod bond;
mod bounded;
mod capped;
mod cluster;
mod extending;
mod failing_sink;
mod failures;
mod generations;
mod ground;
mod growing;
mod halfway;
mod judged_damage;
mod judged_losses;
mod lifecycle;
mod local;
mod losses;
mod mishaps;
mod outlook;
mod pipelines;
mod pools;
mod racing;
mod sealed;
mod submitting;
mod unwritable;
mod worker;

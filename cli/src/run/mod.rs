//! `kgfleet run`: dialogues with models on this machine, durable and resumable.
//!
//! Reading order: [`session`] is a run from its configuration to its end, a coordinator and a worker in one process, [`judged`] the same
//! for judged benchmarks;
//! [`preflight`] looks before it leaps, [`material`] and [`connect`] provide tasks and models, [`export`] writes files, [`protection`] says what may stand in
//! them.

pub mod answer_key;
pub mod connect;
pub mod endpoints;
pub mod export;
pub mod judge_key;
pub mod judged;
pub mod material;
pub mod preflight;
mod progress;
pub mod protection;
pub mod recorded;
pub mod report;
pub mod session;

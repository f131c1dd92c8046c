//! `kgfleet run`: dialogues with models on this machine, durable and resumable.
//!
//! Reading order: [`session`] executes a run, with a coordinator and a worker in one process, and [`judged`] a judged
//! benchmark; [`preflight`] checks beforehand what would fail, [`material`] and [`connect`] provide tasks and models,
//! [`targets`] says what a configuration contacts and reads, and [`trust`] whether its user agreed to that;
//! [`export`] writes files, [`protection`] decides what they may contain.

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
pub mod session;
pub mod summary;
pub mod targets;
pub mod trust;

//! `kgfleet run`: dialogues with models on this machine, durable and resumable.
//!
//! Reading order: [`session`] is a run from its configuration to its end, [`dispatch`] holds the dialogues,
//! [`material`] and [`connect`] provide tasks and models, [`export`] writes files, [`protection`] says what may stand in
//! them.

pub mod answer_key;
mod changes;
pub mod connect;
mod dispatch;
pub mod export;
pub mod material;
mod ordered;
mod progress;
pub mod protection;
pub mod recorded;
pub mod session;
mod stop;
pub mod summary;

/// The hidden verb that an evaluation process is started with.
pub const EVALUATOR_COMMAND: &str = "evaluation-process";

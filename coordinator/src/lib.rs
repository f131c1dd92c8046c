//! The coordinating half of a run: what is to be asked, in which order, by whom, and what has come of it.
//!
//! Reading order: [`configuration`] is what a user writes, [`plan`] cuts it into dialogues and units, `submit` makes a run
//! of it. `exchange` and `grants` are the talk with workers, `commit` takes their records, [`aggregate`] counts them.
//! `rebuild` keeps queue and log in step, `tend` does what nobody asks for, `control` what people ask for.
//! [`Coordinator`] is all of it as others see it, [`access::OnBehalf`] as one caller sees it.
//!
//! Its parts build on each other: `storage` (the sink), `pack_store`, `runs` (those that are loaded), `rebuild` (their
//! queues), `commit` (their logs).
//!
//! A coordinator keeps no state of its own. Records lie in the sink, work in the queue; what is in memory can be read
//! again from the two, by this process or by another one.

pub mod access;
pub mod aggregate;
mod backlog;
mod bond;
mod changes;
mod commit;
pub mod config;
pub mod configuration;
mod control;
mod coordinator;
mod errors;
mod exchange;
mod export;
mod generation;
mod grants;
pub mod headline;
mod health;
pub mod lag;
mod layout;
pub mod manifest;
pub mod matching;
mod measured;
pub mod metrics;
mod pack_store;
mod patience;
mod payload;
mod pipeline;
pub mod plan;
mod poison;
mod progress;
pub mod protection;
mod rate;
mod rebuild;
mod remarks;
mod retries;
mod run;
mod runs;
mod storage;
mod submit;
mod tend;
#[cfg(test)]
mod tests;
mod view;

pub use config::{CoordinatorConfig, Scope};
pub use coordinator::Coordinator;
pub use pack_store::CORE_PACK;
pub use submit::Proposal;

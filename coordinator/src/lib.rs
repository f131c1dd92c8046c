//! The coordinator: plans runs, hands out units, stores records and reports progress.
//!
//! Reading order: [`configuration`] is what a user writes, [`plan`] expands it into dialogues and units, `submit` creates a
//! run from it. `exchange` and `grants` talk to workers, `commit` stores their records, [`aggregate`] counts them. `rebuild`
//! reconciles queue and log, `bond` sees that queue and records belong together, `tend` is the periodic work, `control` has
//! the commands of users, `look` the single dialogues, `crew` the workers as people see them. [`Coordinator`] is the public
//! interface, [`access::Access`] the same for one caller.
//!
//! The parts build on each other: `storage` (the sink), `pack_store`, `runs` (the loaded runs), `rebuild` (their queues),
//! `commit` (their logs).
//!
//! A coordinator has no state of its own. Records are in the sink, work is in the queue; everything in memory can be read
//! again from these two, by this process or another one.

pub mod access;
pub mod aggregate;
mod backlog;
mod bond;
mod changes;
mod commit;
pub mod configuration;
mod control;
mod coordinator;
mod crew;
mod errors;
mod exchange;
mod export;
mod gauges;
mod generation;
mod grants;
mod headline;
mod health;
pub mod lag;
mod layout;
mod log_handle;
pub mod look;
pub mod manifest;
pub mod matching;
mod measured;
pub mod metrics;
pub mod options;
mod pack_store;
mod patience;
mod payload;
mod pipeline;
mod places;
pub mod plan;
mod poison;
mod progress;
pub mod protection;
mod rate;
mod rebuild;
mod remarks;
mod retries;
mod retry;
mod run;
mod runs;
mod signal;
mod storage;
mod submit;
mod tend;
#[cfg(test)]
mod tests;
mod view;

pub use coordinator::Coordinator;
pub use options::{Adopt, CoordinatorOptions, Scope};
pub use pack_store::CORE_PACK;
pub use pipeline::{ModelReading, PipelineCopy, PipelineReading};
pub use submit::Proposal;

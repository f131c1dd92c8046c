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
mod benchmarks;
mod coordinator;
mod errors;
mod fleet;
mod health;
pub mod metrics;
pub mod options;
pub mod plan;
mod queue;
mod queue_owner;
mod records;
mod runs;
mod tending;
#[cfg(test)]
mod tests;
mod views;

pub use benchmarks::copy::PipelineCopy;
pub use benchmarks::progress::ModelReading;
pub use benchmarks::reading::PipelineReading;
pub use benchmarks::submit::Proposal;
pub use coordinator::Coordinator;
pub use fleet::matching;
pub use options::{Adopt, CoordinatorOptions, Scope};
pub use plan::{configuration, planned, protection};
pub use records::packs::CORE_PACK;
pub use views::dialogues;

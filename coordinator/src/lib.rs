//! The coordinator: plans runs, hands out units, stores records and reports progress.
//!
//! It is made of folders, each of which uses only those before it: `metrics`, [`audit`],
//! [`plan`], `records`, `queue`, `runs`,
//! `benchmarks`, `fleet`, `views` and [`access`]. Read them in this order; the head of each says what is in it.
//!
//! [`Coordinator`] wires the parts together, `tending` is their periodic work, and `queue_owner` sees that queue and records
//! belong together. Whoever calls a coordinator does so through [`access::Access`].
//!
//! A coordinator has no state of its own. Records are in the sink, work is in the queue; everything in memory can be read
//! again from these two, by this process or another one.

pub mod access;
pub mod audit;
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

pub use benchmarks::copy::BenchmarkCopy;
pub use benchmarks::reading::BenchmarkReading;
pub use benchmarks::submit::Proposal;
pub use coordinator::Coordinator;
pub use fleet::lost::LOST;
pub use fleet::matching;
pub use options::{Adopt, CoordinatorOptions, Scope};
pub use plan::{configuration, planned, protection};
pub use records::packs::CORE_PACK;
pub use views::dialogues;

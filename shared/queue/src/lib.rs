//! The work queue that coordinators share: which worker holds which unit.
//!
//! [`QueueStore`] states the guarantees. There are two stores: memory ([`MemoryQueue`], the reference model, for one
//! process) and Redis Streams. One conformance suite runs on both, and random operation sequences on Redis are
//! compared with the memory model.
//!
//! The queue is never the source of truth for results; the record log is. A lost queue is rebuilt from the run's
//! manifest and log, under a higher generation.
//!
//! Reading order: [`unit`] and [`run`] have the types, [`commit`] decides which record of a dialogue counts,
//! [`store`] is the trait, `memory` is its reference implementation.

mod address;
mod calls;
pub mod clock;
pub mod commit;
#[cfg(feature = "test-support")]
pub mod conformance;
#[cfg(feature = "test-support")]
pub mod differential;
pub mod error;
pub mod invariants;
pub mod limits;
mod local;
mod memory;
mod owner;
mod redis;
pub mod run;
mod run_state;
pub mod store;
#[cfg(feature = "test-support")]
pub mod testing;
pub mod unit;
mod winners;
pub mod worker;

pub use address::{open, open_as, with_password};
pub use clock::{Clock, ManualClock, SystemClock};
pub use commit::{Commit, CommitEffect, Committed};
pub use error::{Error, Result};
pub use local::MemoryStore;
pub use memory::MemoryQueue;
pub use owner::QueueOwner;
pub use redis::{RedisOptions, RedisStore};
pub use run::{ModelCounts, Parked, RunRef, RunSpec, RunStatus};
pub use run_state::RunState;
pub use store::QueueStore;
pub use unit::{
    Added, Death, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Suspect, Transition, UnitId,
};
pub use worker::{
    Claim, Heartbeat, HeartbeatOrders, PoolsEntry, RateLimit, RateReply, WorkerEntry, WorkerNameTaken,
};

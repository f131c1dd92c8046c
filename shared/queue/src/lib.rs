//! Who works on what: the queue that coordinators share.
//!
//! [`QueueStore`] says what a queue promises. Two stores keep the promise: memory ([`MemoryQueue`], the
//! reference model, for one process) and Redis Streams. One conformance suite runs on both, and random
//! operation sequences on Redis are compared with the memory model.
//!
//! The queue is never the truth about results: that is the record log. A queue that is lost whole is built
//! again from the run's manifest and its log, under a higher generation.
//!
//! Reading order: [`unit`] and [`run`] are the nouns, [`commit`] decides which record of a dialogue wins,
//! [`store`] is the trait, `memory` shows what it means.

mod address;
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
mod redis;
pub mod run;
mod safeguards;
pub mod store;
#[cfg(feature = "test-support")]
pub mod testing;
pub mod unit;
mod winners;
pub mod worker;

pub use address::{open, open_as};
pub use clock::{Clock, ManualClock, SystemClock};
pub use commit::{Commit, Committed, Verdict};
pub use error::{Error, Result};
pub use local::MemoryStore;
pub use memory::MemoryQueue;
pub use redis::{RedisOptions, RedisStore};
pub use run::{ModelCounts, Parked, RunRef, RunSpec, RunState, RunStatus};
pub use safeguards::Safeguards;
pub use store::{QueueStore, Reply};
pub use unit::{
    Added, Death, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Suspect, Transition, UnitId,
};
pub use worker::{Claim, Heartbeat, NameTaken, Orders, Rate, RateReply, WorkerEntry};

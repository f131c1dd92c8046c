//! The work queue that coordinators share: which worker holds which unit.
//!
//! [`QueueStore`] states the guarantees. The queue is [`MemoryQueue`], a plain struct that takes the time. One process keeps it for
//! itself; in a fleet the leader among the coordinators does, and Redis keeps what the next leader must know.
//!
//! The queue is never the source of truth for results; the record log is. A lost queue is rebuilt from the run's
//! manifest and log, under a higher generation.
//!
//! Reading order: [`unit`] and [`run`] have the types, `memory` is the queue,
//! `leader` decides who leads, `rounds` what leaves a leader when, `kept` what Redis keeps, `keeper` leads, `redis` talks to Redis, and
//! [`store`] is the trait that `memory_store` implements.

mod address;
mod calls;
mod clock;
pub mod error;
mod keeper;
mod kept;
mod leader;
pub mod limits;
mod memory;
mod memory_store;
mod owner;
mod redis;
mod rounds;
pub mod run;
mod run_state;
pub mod store;
#[cfg(feature = "test-support")]
pub mod testing;
pub mod unit;
pub mod worker;

pub use address::{open, open_as, with_password};
pub use clock::{Clock, SystemClock};
pub use error::{Error, Result};
pub use keeper::LeaderFence;
pub use memory::MemoryQueue;
pub use memory_store::MemoryStore;
pub use owner::QueueOwner;
pub use redis::RedisOptions;
pub use run::{ModelCounts, Parked, RunRef, RunSpec, RunStatus};
pub use run_state::RunState;
pub use store::QueueStore;
#[cfg(feature = "test-support")]
pub use testing::ManualClock;
pub use unit::{
    Added, Death, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Suspect, Transition, UnitId,
};
pub use worker::{
    Claim, Heartbeat, HeartbeatOrders, PoolsEntry, RateLimit, RateReply, WorkerEntry, WorkerNameTaken,
};

//! When the servers of models start on a pool of GPUs, and what comes of it.
//!
//! Everything here is a function of what it is given: no clock, no network, no files. [`decide()`] is what a conductor asks every
//! few seconds. [`world`] asks the same function in virtual time, so that the plan that people read is the schedule that they
//! get, and so that a thousand nights with evictions, slow loads and other tenants take minutes.
//!
//! Reading order: [`view`] is what is known of pools, servers and limits; [`decide`] what to do about it; [`failures`] when a pool
//! that failed is tried again; [`bound`] how soon it could be over; [`world`] what happens then.

pub mod bound;
pub mod decide;
pub mod failures;
pub mod view;
pub mod world;

pub use decide::{Act, Decision, Wait, decide};
pub use domain::pools::ServerEnd;
pub use failures::{Failures, NextTry};
pub use view::{Limits, Needs, Pool, PoolNeed, PoolServer, PoolServerPhase, PoolView, PoolsView};
pub use world::{NightOutcome, World, WorldPool};

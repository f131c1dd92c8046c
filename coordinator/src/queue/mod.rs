//! The queues of runs, as they follow from the sink.
//!
//! `client` calls the queue of a run, and joins or builds it where it is lost, in the `generation` that the sink has claimed.
//! `fence` is who leads by the sink, `queued_unit` what a unit carries, `signal` tells waiting workers of new work, `measured` times every call.

pub(crate) mod client;
pub(crate) mod fence;
pub(crate) mod generation;
pub(crate) mod measured;
pub(crate) mod queued_unit;
pub(crate) mod signal;

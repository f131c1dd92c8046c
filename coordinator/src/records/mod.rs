//! What a coordinator keeps in the sink, and the runs that it has loaded from there.
//!
//! `store` is the sink by the rules of a single process or of a fleet, `packs` the packs of runs, `loaded` the runs in memory.
//! `named_models` remembers whom any of them names, and which cannot be loaded.
//! A `run` has its plan, which never changes, and what follows from its log: a table of `dialogues`, one of their `usage`, its state
//! and its retries (`events`). `server_usage` is what ended servers of pools left.

pub(crate) mod dialogues;
pub(crate) mod events;
pub(crate) mod lag;
pub(crate) mod loaded;
pub(crate) mod log_handle;
pub(crate) mod named_models;
pub(crate) mod packs;
pub(crate) mod rate;
pub(crate) mod remarks;
pub(crate) mod run;
pub(crate) mod server_usage;
pub(crate) mod store;
pub(crate) mod usage;

//! What a coordinator keeps in the sink, and the runs that it has loaded from there.
//!
//! `store` is the sink by the rules of a single process or of a fleet, `packs` the packs of runs, `loaded` the runs in memory.
//! `named_models` remembers whom any of them names, and which cannot be loaded.
//! A `run` has its plan, which never changes, and a table of `dialogues`, which follows from its log, and one of their `usage`;
//! `positions` says where in
//! the log the records lie that count. `server_usage` is what ended servers of pools left.

pub(crate) mod dialogues;
pub(crate) mod lag;
pub(crate) mod loaded;
pub(crate) mod log_handle;
pub(crate) mod named_models;
pub(crate) mod packs;
pub(crate) mod positions;
pub(crate) mod rate;
pub(crate) mod remarks;
pub(crate) mod retry;
pub(crate) mod run;
pub(crate) mod seals_seen;
pub(crate) mod server_usage;
pub(crate) mod store;
pub(crate) mod usage;

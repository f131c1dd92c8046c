//! Works benchmarks off on this machine, with a coordinator and a worker in one process, or hands them to a fleet, and shows
//! how they go on.
//!
//! `start` is what the verbs call, `session` works a run off and `judged` a judged benchmark, with the `worker` of this process;
//! `preflight` checks beforehand what would fail, `connect` reaches models and the simulator. `submit` hands a configuration to
//! a coordinator, `watch` shows what becomes of it, `notify` tells others.

pub mod answer_key;
pub mod connect;
pub mod ending;
pub mod judge_key;
pub mod judged;
pub mod notify;
pub mod preflight;
pub mod progress;
pub mod recordings;
pub mod session;
pub mod start;
pub mod submit;
pub mod watch;
pub mod worker;

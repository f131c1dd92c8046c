//! Runs benchmarks on this machine, with a coordinator and a worker in one process, or submits them to a fleet, and
//! shows their progress.
//!
//! The verbs call `start`. `session` carries out a benchmark with the `worker` of this process, `wait` sees it to its
//! end, and `ending` says how it ended; `preflight` finds problems that would fail a run, `connect` reaches models and
//! the simulator. `submit` sends a configuration to a coordinator, `watch` follows a run, `notify` reports its
//! events elsewhere, `steer` sends the commands of several verbs.

pub mod answer_key;
pub mod connect;
pub mod ending;
pub mod judge_key;
pub mod notify;
pub mod preflight;
pub mod progress;
pub mod recordings;
pub mod session;
pub mod start;
pub mod steer;
pub mod submit;
pub mod wait;
pub mod watch;
pub mod worker;

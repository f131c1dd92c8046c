//! What people see of runs, benchmarks and workers.

pub(crate) mod benchmark;
pub mod dialogues;
pub(crate) mod gauges;
pub(crate) mod history;
pub(crate) mod progress;
pub(crate) mod records;
pub(crate) mod run;

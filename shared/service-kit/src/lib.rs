//! What every process needs, independent of benchmarks: logs, metrics, probes and what they report, shutdown, work aside from the async threads,
//! files that somebody else names, and who may read its own. This crate knows no run, model or dialogue.

pub mod aside;
pub mod descriptors;
pub mod http;
pub mod metrics;
pub mod named_files;
mod readiness;
pub mod shutdown;
pub mod telemetry;
pub mod umask;

pub use readiness::Readiness;
pub use shutdown::{Stop, StopReceiver, StopSender};

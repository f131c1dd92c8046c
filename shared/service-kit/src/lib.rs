//! What every process needs, independent of benchmarks: logs, metrics, probes, shutdown, and who may read
//! its files. This crate knows no
//! run, model or dialogue.

pub mod descriptors;
pub mod http;
pub mod metrics;
pub mod shutdown;
pub mod telemetry;
pub mod umask;

pub use shutdown::{Stop, StopReceiver, StopSender};

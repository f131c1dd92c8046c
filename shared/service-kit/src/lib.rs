//! What every process needs, independent of benchmarks: logs, metrics, traces, probes and shutdown. This crate knows no
//! run, model or dialogue.

pub mod descriptors;
pub mod http;
pub mod metrics;
pub mod shutdown;
pub mod telemetry;
pub mod traces;

pub use shutdown::{Stop, StopReceiver, StopSender};

//! What every process needs and nothing about benchmarks: logs, metrics, probes and an orderly end.

pub mod http;
pub mod metrics;
pub mod shutdown;
pub mod telemetry;

pub use shutdown::{Stop, StopReceiver, StopSender};

//! What every process needs and nothing about benchmarks: logs, metrics, probes, an orderly end, and patience.

pub mod backoff;
pub mod http;
pub mod metrics;
pub mod shutdown;
pub mod telemetry;

pub use backoff::Backoff;
pub use shutdown::{Stop, StopReceiver, StopSender};

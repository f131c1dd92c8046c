//! What every process needs, independent of benchmarks: logs, metrics, probes, shutdown and back-off.

pub mod backoff;
pub mod http;
pub mod metrics;
pub mod shutdown;
pub mod telemetry;

pub use backoff::Backoff;
pub use shutdown::{Stop, StopReceiver, StopSender};

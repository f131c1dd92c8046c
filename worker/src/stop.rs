//! How a worker is told to end: once drains, twice aborts. Drained, it begins nothing new, finishes what runs within its
//! grace period and gives the rest back; aborted, it gives everything back at once.

pub use service_kit::shutdown::{Stop, StopReceiver};

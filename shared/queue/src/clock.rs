//! The store's clock. Leases are measured by it alone, so skew between machines does not matter. Redis has its own
//! (`TIME`); stores in this process use one of these.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch; never decreases.
pub trait Clock: Send + Sync + 'static {
    fn now_ms(&self) -> u64;
}

/// Starts at the time of day and is monotonic from then on: setting the machine's time or suspending the machine
/// expires no lease.
#[derive(Debug)]
pub struct SystemClock {
    began_ms: u64,
    began: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        // If the machine's clock is before 1970, leases count from 1970: still in order.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began_ms: millis(wall), began: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        self.began_ms + millis(self.began.elapsed())
    }
}

/// Whole milliseconds; the limits keep every duration far below what 64 bits hold.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

//! The store's own clock. Leases are measured by it alone, so skew between machines does not matter. Redis
//! brings its own (`TIME`); the stores in this process take one of these.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch, never falling.
pub trait Clock: Send + Sync + 'static {
    fn now_ms(&self) -> u64;
}

/// The time of day when it was made, and from then on the monotonic clock: no lease expires because somebody set the
/// machine's time or the machine slept.
#[derive(Debug)]
pub struct SystemClock {
    began_ms: u64,
    began: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        // A machine whose clock stands before 1970 gets leases counted from 1970: still in order.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began_ms: crate::local::millis(wall), began: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        self.began_ms + crate::local::millis(self.began.elapsed())
    }
}

/// A clock that moves only when told to, for tests.
#[derive(Debug)]
pub struct ManualClock {
    now_ms: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at `now_ms`.
    pub fn at(now_ms: u64) -> Self {
        Self { now_ms: AtomicU64::new(now_ms) }
    }

    /// Moves it forward.
    pub fn advance_ms(&self, by: u64) {
        self.now_ms.fetch_add(by, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }
}

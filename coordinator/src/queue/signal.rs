//! Tells those who wait for work that there may be some.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts the changes of the queue that this process made or noticed.
#[derive(Default)]
pub(crate) struct WorkSignal {
    changes: AtomicU64,
    changed: Notify,
}

impl WorkSignal {
    /// Tells of a change. Takes no lock that is held elsewhere.
    pub(crate) fn touch(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// The number of changes so far: what was read before the latest one is outdated.
    pub(crate) fn count(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns when there are other changes than `seen`; those who wait are woken in their order.
    pub(crate) async fn after(&self, seen: u64) {
        let mut changed = pin!(self.changed.notified());
        loop {
            // From here on no change is missed.
            changed.as_mut().enable();
            if self.count() != seen {
                return;
            }
            changed.as_mut().await;
            changed.set(self.changed.notified());
        }
    }
}

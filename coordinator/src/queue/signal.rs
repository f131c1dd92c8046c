//! Tells those who wait for work that there may be some.

use tokio::sync::watch;

/// Counts the changes of the queue that this process made or noticed.
pub(crate) struct WorkSignal(watch::Sender<u64>);

impl Default for WorkSignal {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl WorkSignal {
    /// Tells of a change. Takes no lock that is held elsewhere.
    pub(crate) fn touch(&self) {
        self.0.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// The number of changes so far: what was read before the latest one is outdated.
    pub(crate) fn count(&self) -> u64 {
        *self.0.borrow()
    }

    /// Receives changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

//! How long records have been waiting.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Records under way, by when they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lag(Arc<Mutex<BTreeMap<Duration, u64>>>);

/// A record that is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct WaitingRecord {
    lag: Lag,
    since: Duration,
}

impl Lag {
    /// A record comes at `now`.
    pub(crate) fn begin(&self, now: Duration) -> WaitingRecord {
        // Times of a millisecond share an entry, so that a burst takes little room.
        let since = Duration::from_millis(now.as_millis() as u64);
        *self.lock().entry(since).or_default() += 1;
        WaitingRecord { lag: self.clone(), since }
    }

    /// Age of the oldest record under way; zero without one.
    pub(crate) fn oldest(&self, now: Duration) -> Duration {
        self.lock().keys().next().map_or(Duration::ZERO, |since| now.saturating_sub(*since))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Duration, u64>> {
        // Plain counts are whole at any moment, also where a panic passed through.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitingRecord {
    fn drop(&mut self) {
        let mut waiting = self.lag.lock();
        if let Some(count) = waiting.get_mut(&self.since) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.since);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_record_decides() {
        let (lag, at) = (Lag::default(), Duration::from_secs);
        let (first, second, third) = (lag.begin(at(1)), lag.begin(at(1)), lag.begin(at(5)));
        assert_eq!(lag.oldest(at(10)), at(9));
        drop(first);
        assert_eq!(lag.oldest(at(10)), at(9));
        drop(second);
        assert_eq!(lag.oldest(at(10)), at(5));
        drop(third);
        assert_eq!(lag.oldest(at(10)), Duration::ZERO);
    }
}

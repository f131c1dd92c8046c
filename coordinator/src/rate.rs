//! Records per second over the last minute.

use std::collections::VecDeque;
use std::time::Duration;

/// Seconds that the rate looks back.
const WINDOW_S: u64 = 60;

/// Counts by second.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// Second since the start, and records in it; at most [`WINDOW_S`] of them.
    seconds: VecDeque<(u64, u64)>,
    first: Option<Duration>,
}

impl Rate {
    /// Counts records at `now`, a time since some fixed start.
    pub(crate) fn add(&mut self, now: Duration, records: u64) {
        self.first.get_or_insert(now);
        match self.seconds.back_mut() {
            Some((second, count)) if *second == now.as_secs() => *count += records,
            _ => self.seconds.push_back((now.as_secs(), records)),
        }
        self.forget(now);
    }

    /// Records per second over the last minute, or since the first record where that is less.
    pub(crate) fn per_second(&mut self, now: Duration) -> f64 {
        self.forget(now);
        let records: u64 = self.seconds.iter().map(|(_, count)| count).sum();
        let since = self.first.map_or(0.0, |first| now.saturating_sub(first).as_secs_f64());
        records as f64 / since.clamp(1.0, WINDOW_S as f64)
    }

    fn forget(&mut self, now: Duration) {
        while self.seconds.front().is_some_and(|(second, _)| second + WINDOW_S <= now.as_secs()) {
            self.seconds.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_the_last_minute() {
        let mut rate = Rate::default();
        let at = Duration::from_secs;
        assert_eq!(rate.per_second(at(5)), 0.0);
        for second in 10..20 {
            rate.add(at(second), 30);
        }
        assert_eq!(rate.per_second(at(20)), 30.0);
        assert_eq!(rate.per_second(at(70)), 9.0 * 30.0 / 60.0);
        assert_eq!(rate.per_second(at(200)), 0.0);
    }
}

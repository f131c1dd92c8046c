//! The rate of records over the last minute.

use std::collections::VecDeque;
use std::time::Duration;

/// Length of the window in seconds.
const WINDOW_S: u64 = 60;

/// Minimum time for a rate: two records within a millisecond say nothing about a second.
const SHORTEST: Duration = Duration::from_secs(1);

/// The amount in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Amount {
    records: u64,
    tokens: u64,
}

/// The amount per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Speed {
    pub records: f64,
    pub tokens: f64,
}

/// Counts by second, from the start of the work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    /// Second since the start, and its amount; at most [`WINDOW_S`] entries.
    seconds: VecDeque<(u64, Amount)>,
    /// Since when there has been leased work, or records.
    since: Option<Duration>,
}

impl Rate {
    /// Notes whether work is leased at `now`, a time since a fixed start: the rate counts from the start of the work, not from
    /// its first record.
    pub(crate) fn working(&mut self, now: Duration, in_hand: bool) {
        self.forget(now);
        if in_hand {
            self.since.get_or_insert(now);
        } else if self.seconds.is_empty() {
            self.since = None;
        }
    }

    /// Counts records and their tokens.
    pub(crate) fn add(&mut self, now: Duration, records: u64, tokens: u64) {
        self.since.get_or_insert(now);
        match self.seconds.back_mut() {
            Some((second, amount)) if *second == now.as_secs() => {
                amount.records += records;
                amount.tokens += tokens;
            }
            _ => self.seconds.push_back((now.as_secs(), Amount { records, tokens })),
        }
        self.forget(now);
    }

    /// The amount per second over the last minute, or since the start of the work if that is shorter.
    pub(crate) fn per_second(&mut self, now: Duration) -> Speed {
        self.forget(now);
        let since = self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let seconds = since.clamp(SHORTEST, Duration::from_secs(WINDOW_S)).as_secs_f64();
        let sum = |of: fn(&Amount) -> u64| self.seconds.iter().map(|(_, amount)| of(amount)).sum::<u64>();
        Speed {
            records: sum(|amount| amount.records) as f64 / seconds,
            tokens: sum(|amount| amount.tokens) as f64 / seconds,
        }
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
        assert_eq!(rate.per_second(at(5)), Speed::default());
        for second in 10..20 {
            rate.add(at(second), 30, 600);
        }
        assert_eq!(rate.per_second(at(20)), Speed { records: 30.0, tokens: 600.0 });
        assert_eq!(rate.per_second(at(70)).records, 9.0 * 30.0 / 60.0);
        assert_eq!(rate.per_second(at(200)), Speed::default());
    }

    #[test]
    fn a_rate_counts_from_when_the_work_began() {
        let (mut rate, at) = (Rate::default(), Duration::from_secs);
        rate.working(at(0), false);
        rate.working(at(100), true);
        rate.add(at(120), 10, 0);
        assert_eq!(rate.per_second(at(120)).records, 0.5);
        // What lay between two stretches of work is no part of the second.
        rate.working(at(300), false);
        rate.working(at(1000), true);
        rate.add(at(1010), 10, 0);
        assert_eq!(rate.per_second(at(1010)).records, 1.0);
    }
}

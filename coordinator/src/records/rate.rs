//! The rate of records over the last minute: of the dialogues that ended within a minute of the latest of those that came.
//! Records that waited while they could not be stored come all at once, and are no speed. Only the clocks of workers are
//! compared with each other, so that one that is wrong everywhere does no harm.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

/// Length of the window in seconds.
const WINDOW_S: u64 = 60;

/// Minimum time for a rate: two records within a millisecond say nothing about a second.
const SHORTEST: Duration = Duration::from_secs(1);

/// What ended in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Amount {
    records: u64,
    tokens: u64,
    /// The second since the start in which the last of it came.
    came_s: u64,
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
    /// By the second in which dialogues ended, since the Unix epoch; all within [`WINDOW_S`] of the latest.
    seconds: BTreeMap<i64, Amount>,
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

    /// Counts records and their tokens, of dialogues that ended at this time.
    pub(crate) fn add(&mut self, now: Duration, ended: Timestamp, records: u64, tokens: u64) {
        self.since.get_or_insert(now);
        self.forget(now);
        let amount = self.seconds.entry(ended.as_second()).or_default();
        amount.records = amount.records.saturating_add(records);
        amount.tokens = amount.tokens.saturating_add(tokens);
        amount.came_s = now.as_secs();
        if let Some((latest, _)) = self.seconds.last_key_value() {
            let first = latest - WINDOW_S as i64 + 1;
            self.seconds = self.seconds.split_off(&first);
        }
    }

    /// The amount per second over the last minute, or since the start of the work if that is shorter.
    pub(crate) fn per_second(&mut self, now: Duration) -> Speed {
        self.forget(now);
        let since = self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let (first, last) = (self.seconds.keys().next(), self.seconds.keys().next_back());
        // What was made before the first of it came took that long, too.
        let made = first.zip(last).map_or(0, |(first, last)| last.abs_diff(*first));
        let took = since.max(Duration::from_secs(made));
        let seconds = took.clamp(SHORTEST, Duration::from_secs(WINDOW_S)).as_secs_f64();
        let sum = |of: fn(&Amount) -> u64| self.seconds.values().map(of).fold(0, u64::saturating_add);
        Speed {
            records: sum(|amount| amount.records) as f64 / seconds,
            tokens: sum(|amount| amount.tokens) as f64 / seconds,
        }
    }

    fn forget(&mut self, now: Duration) {
        self.seconds.retain(|_, amount| amount.came_s + WINDOW_S > now.as_secs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time by the clock of a worker that is an hour behind.
    fn ended(second: u64) -> Timestamp {
        Timestamp::from_second(1_780_000_000 - 3_600 + second as i64).unwrap()
    }

    #[test]
    fn records_that_waited_are_no_speed() {
        let (mut rate, at) = (Rate::default(), Duration::from_secs);
        for second in 0..100 {
            rate.add(at(second), ended(second), 1, 0);
        }
        // For ten minutes nothing can be stored, and the workers go on. Then all of it comes within six seconds.
        for second in 700..706 {
            for waited in 0..100 {
                rate.add(at(second), ended(100 * (second - 699) + waited), 1, 0);
            }
            assert_eq!(rate.per_second(at(second)).records, 1.0, "{second}");
        }
        for second in 706..800 {
            rate.add(at(second), ended(second), 1, 0);
            let Speed { records, .. } = rate.per_second(at(second));
            assert!((0.8..=1.0).contains(&records), "{second}: {records}");
        }
        // So it is where a coordinator starts meanwhile.
        let mut rate = Rate::default();
        for waited in 0..600 {
            rate.add(at(1), ended(waited), 1, 0);
        }
        assert!(rate.per_second(at(1)).records < 1.1);
    }

    #[test]
    fn the_rate_follows_the_last_minute() {
        let mut rate = Rate::default();
        let at = Duration::from_secs;
        assert_eq!(rate.per_second(at(5)), Speed::default());
        for second in 10..20 {
            rate.add(at(second), ended(second), 30, 600);
        }
        assert_eq!(rate.per_second(at(20)), Speed { records: 30.0, tokens: 600.0 });
        assert_eq!(rate.per_second(at(70)).records, 9.0 * 30.0 / 60.0);
        assert_eq!(rate.per_second(at(200)), Speed::default());
    }

    #[test]
    fn no_record_is_too_large_for_a_rate() {
        let mut rate = Rate::default();
        for second in [0, 0, 1] {
            rate.add(Duration::from_secs(second), ended(second), 1, u64::MAX);
        }
        assert!(rate.per_second(Duration::from_secs(1)).tokens >= 1e19);
    }

    #[test]
    fn a_rate_counts_from_when_the_work_began() {
        let (mut rate, at) = (Rate::default(), Duration::from_secs);
        rate.working(at(0), false);
        rate.working(at(100), true);
        rate.add(at(120), ended(120), 10, 0);
        assert_eq!(rate.per_second(at(120)).records, 0.5);
        // What lay between two stretches of work is no part of the second.
        rate.working(at(300), false);
        rate.working(at(1000), true);
        rate.add(at(1010), ended(1010), 10, 0);
        assert_eq!(rate.per_second(at(1010)).records, 1.0);
    }
}

//! Decides which calls are late: those whose first token takes far longer than it usually does.
//!
//! A plain state machine, one per model of a run. A late call is made again at another server of its model (see
//! [`second`](crate::second)), but no more than a small share of the calls: where everything has become slow, asking
//! twice would only double the load.
//!
//! Only streamed answers tell of first tokens. Of a model whose answers come whole nothing is known here, and no call of
//! it is late.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// First tokens that must be known before any call is late: one in a hundred of fewer is none.
pub const FIRST_TOKENS_MIN: usize = 100;

/// First tokens remembered: the latest ones, because their times follow the load of the servers.
pub const FIRST_TOKENS_KEPT_MAX: usize = 1_000;

/// No call is late before this time, however fast the others were: what is saved must be worth a second call.
pub const LATE_MIN: Duration = Duration::from_secs(10);

/// A call is late after so many times the time in which 99 of 100 had their first token.
pub const LATE_FACTOR: u32 = 2;

/// At most one in so many calls is asked again.
pub const HEDGED_ONE_IN: u64 = 20;

/// When a call is late, and how many late ones are asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HedgeRules {
    /// See [`FIRST_TOKENS_MIN`].
    pub first_tokens_min: usize,
    /// See [`LATE_MIN`].
    pub late_min: Duration,
    /// See [`LATE_FACTOR`].
    pub late_factor: u32,
    /// See [`HEDGED_ONE_IN`].
    pub one_in: u64,
}

impl Default for HedgeRules {
    fn default() -> Self {
        Self {
            first_tokens_min: FIRST_TOKENS_MIN,
            late_min: LATE_MIN,
            late_factor: LATE_FACTOR,
            one_in: HEDGED_ONE_IN,
        }
    }
}

/// What is known of the calls of one model of one run.
#[derive(Debug)]
pub struct Tail {
    rules: HedgeRules,
    /// Times to the latest first tokens, oldest first.
    recent: VecDeque<Duration>,
    /// Calls whose first token came.
    calls: u64,
    /// Calls that were asked again.
    hedged: u64,
}

impl Tail {
    pub fn new(rules: HedgeRules) -> Self {
        Self { rules, recent: VecDeque::new(), calls: 0, hedged: 0 }
    }

    /// The first token of a call came after this time.
    pub fn first_token(&mut self, took: Duration) {
        if self.recent.len() >= FIRST_TOKENS_KEPT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(took);
        self.calls += 1;
    }

    /// Calls that were sent before this moment, and have no token yet, are late. `None` while too little is known.
    pub fn late_before(&self, now: Instant) -> Option<Instant> {
        if self.recent.is_empty() || self.recent.len() < self.rules.first_tokens_min {
            return None;
        }
        let mut times: Vec<Duration> = self.recent.iter().copied().collect();
        let rank = (times.len() * 99).div_ceil(100).saturating_sub(1);
        let (_, usual, _) = times.select_nth_unstable(rank);
        let late_after = usual.saturating_mul(self.rules.late_factor).max(self.rules.late_min);
        now.checked_sub(late_after)
    }

    /// Counts one more call that is asked again; false if there have been too many for the calls so far.
    pub fn hedge(&mut self) -> bool {
        let may = (self.hedged + 1).saturating_mul(self.rules.one_in) <= self.calls;
        self.hedged += u64::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// After so many first tokens that took so long each.
    fn tail(calls: usize, took: Duration) -> Tail {
        let mut tail = Tail::new(HedgeRules::default());
        (0..calls).for_each(|_| tail.first_token(took));
        tail
    }

    /// After how long a call is late.
    fn patience(tail: &Tail) -> Option<Duration> {
        let now = Instant::now() + secs(100_000);
        tail.late_before(now).map(|bound| now.duration_since(bound))
    }

    #[test]
    fn nothing_is_late_before_enough_is_known() {
        assert_eq!(patience(&tail(FIRST_TOKENS_MIN - 1, secs(1))), None);
        assert_eq!(patience(&tail(FIRST_TOKENS_MIN, secs(1))), Some(LATE_MIN));
        let none_known = Tail::new(HedgeRules { first_tokens_min: 0, ..HedgeRules::default() });
        assert_eq!(patience(&none_known), None);
    }

    #[test]
    fn late_is_what_takes_twice_as_long_as_99_of_100() {
        let mut tail = tail(98, secs(1));
        tail.first_token(secs(30));
        tail.first_token(secs(1_000));
        assert_eq!(patience(&tail), Some(secs(60)), "the slowest of a hundred does not count");
        // The load changes, and what was before is forgotten.
        (0..FIRST_TOKENS_KEPT_MAX).for_each(|_| tail.first_token(secs(20)));
        assert_eq!(patience(&tail), Some(secs(40)));
        assert_eq!(tail.recent.len(), FIRST_TOKENS_KEPT_MAX);
    }

    #[test]
    fn one_in_twenty_is_asked_again_and_no_more() {
        let mut tail = tail(19, secs(1));
        assert!(!tail.hedge());
        tail.first_token(secs(1));
        assert!(tail.hedge() && !tail.hedge());
        (0..40).for_each(|_| tail.first_token(secs(1)));
        assert_eq!([tail.hedge(), tail.hedge(), tail.hedge()], [true, true, false]);
    }

    proptest! {
        #[test]
        fn the_share_is_kept_in_any_order_of_events(events in prop::collection::vec(any::<bool>(), 0..600)) {
            let mut tail = tail(0, secs(1));
            let (mut calls, mut hedged) = (0_u64, 0_u64);
            for is_answer in events {
                if is_answer {
                    tail.first_token(secs(1));
                    calls += 1;
                } else {
                    hedged += u64::from(tail.hedge());
                }
                prop_assert!(hedged * HEDGED_ONE_IN <= calls);
            }
        }
    }
}

//! Delays between attempts.

use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

use crate::machine;
use crate::seed::SplitMix64;

/// Bounded exponential back-off with jitter. It has no clock; the caller sleeps.
///
/// The n-th delay (from 0) is drawn uniformly from `shortest ..= min(shortest * 2^(n + 1), longest)`. Drawing from
/// the whole range spreads clients that lost the same server at the same moment as far as possible ("full jitter" in
/// M. Brooker, *Exponential Backoff and Jitter*, AWS Architecture Blog, 2015); the lower bound keeps them from
/// retrying at once.
#[derive(Clone, Debug)]
pub struct Backoff {
    shortest: Duration,
    longest: Duration,
    ceiling: Duration,
    /// The share of the ceiling that every delay has at least.
    floor: f64,
    random: SplitMix64,
}

impl Default for Backoff {
    /// From 0.2 s to 5 s.
    fn default() -> Self {
        Self::new(Duration::from_millis(200), Duration::from_secs(5))
    }
}

impl Backoff {
    /// Delays between these two. If `longest` is smaller, every delay is `longest`.
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        // The standard library's source of varying seeds; nothing better is needed here.
        let seed = machine::random(|| std::hash::RandomState::new().build_hasher().finish());
        Self::seeded(shortest, longest, seed)
    }

    /// The same with a fixed seed, so that a test sees the same delays each time.
    pub fn seeded(shortest: Duration, longest: Duration, seed: u64) -> Self {
        let shortest = shortest.min(longest);
        Self { shortest, longest, ceiling: shortest, floor: 0.0, random: SplitMix64::new(seed) }
    }

    /// Delays of at least half their ceiling ("equal jitter"). For few clients whose number of tries is bounded: the
    /// tries then cover a longer time.
    pub fn at_least_half(self) -> Self {
        Self { floor: 0.5, ..self }
    }

    /// The delay before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        self.ceiling = self.ceiling.saturating_mul(2).min(self.longest);
        let floor = self.ceiling.mul_f64(self.floor).max(self.shortest);
        floor + (self.ceiling - floor).mul_f64(self.random.unit())
    }

    /// Resets after a success.
    pub fn reset(&mut self) {
        self.ceiling = self.shortest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORTEST: Duration = Duration::from_millis(200);
    const LONGEST: Duration = Duration::from_secs(5);

    #[test]
    fn delays_stay_between_the_bounds_and_below_a_doubling_ceiling() {
        for seed in 0..200 {
            let mut backoff = Backoff::seeded(SHORTEST, LONGEST, seed);
            for n in 0..40 {
                let ceiling =
                    SHORTEST.saturating_mul(1_u32.checked_shl(n + 1).unwrap_or(u32::MAX)).min(LONGEST);
                let delay = backoff.next_delay();
                assert!(
                    (SHORTEST..=ceiling).contains(&delay),
                    "seed {seed}, delay {n}: {delay:?} above {ceiling:?}"
                );
            }
        }
    }

    #[test]
    fn delays_use_the_whole_range() {
        let mut backoff = Backoff::seeded(SHORTEST, LONGEST, 7);
        let delays: Vec<_> = (0..200).map(|_| backoff.next_delay()).skip(5).collect();
        assert!(delays.iter().any(|delay| *delay < Duration::from_secs(1)));
        assert!(delays.iter().any(|delay| *delay > Duration::from_secs(4)));
    }

    #[test]
    fn half_of_the_ceiling_is_waited_at_least() {
        let mut backoff = Backoff::seeded(SHORTEST, LONGEST, 7).at_least_half();
        let mut ceiling = SHORTEST;
        for _ in 0..40 {
            ceiling = (2 * ceiling).min(LONGEST);
            let delay = backoff.next_delay();
            assert!((ceiling / 2..=ceiling).contains(&delay), "{delay:?} of {ceiling:?}");
        }
    }

    #[test]
    fn two_clients_wait_differently_and_the_same_seed_waits_the_same() {
        let delays = |mut backoff: Backoff| (0..5).map(|_| backoff.next_delay()).collect::<Vec<_>>();
        assert_ne!(delays(Backoff::default()), delays(Backoff::default()));
        let seeded = || Backoff::seeded(SHORTEST, LONGEST, 1);
        assert_eq!(delays(seeded()), delays(seeded()));
    }

    #[test]
    fn success_begins_anew() {
        let mut backoff = Backoff::default();
        for _ in 0..20 {
            backoff.next_delay();
        }
        backoff.reset();
        assert!(backoff.next_delay() <= 2 * SHORTEST);
    }

    #[test]
    fn bounds_the_wrong_way_round_or_huge_do_no_harm() {
        let mut narrow = Backoff::new(LONGEST, SHORTEST);
        assert_eq!((narrow.next_delay(), narrow.next_delay()), (SHORTEST, SHORTEST));
        let mut endless = Backoff::new(Duration::from_secs(1), Duration::MAX);
        for _ in 0..200 {
            assert!(endless.next_delay() >= Duration::from_secs(1));
        }
    }
}

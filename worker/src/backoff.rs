//! Delays between attempts to reach something.

use std::time::Duration;

use rand::RngExt;

/// Delays that double from 0.2 s to 5 s, each cut by a random part of up to a half, so that many workers that lost the
/// same coordinator do not return at the same moment.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(200);
    const MAX: Duration = Duration::from_secs(5);

    /// How long to wait after one more failure.
    pub fn failed(&mut self) -> Duration {
        let doubled = Self::FIRST.saturating_mul(1 << self.failures.min(10)).min(Self::MAX);
        self.failures += 1;
        doubled.mul_f64(rand::rng().random_range(0.5..=1.0))
    }

    /// It worked.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_their_bound_and_begin_anew() {
        let mut backoff = Backoff::default();
        for doubled in [200, 400, 800, 1600, 3200, 5000, 5000] {
            let delay = backoff.failed().as_millis();
            assert!((doubled / 2..=doubled).contains(&delay), "{delay} ms of {doubled} ms");
        }
        backoff.succeeded();
        assert!(backoff.failed() <= Backoff::FIRST);
    }
}

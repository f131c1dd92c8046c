//! A Prometheus histogram of atomics, and vLLM's bucket bounds.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// vLLM 0.32's bucket bounds. vLLM ends [`TOKENS`](bounds::TOKENS) at the model's context length; here it is one list for all models.
pub(super) mod bounds {
    pub(in super::super) const TOKENS: &[f64] =
        &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5];
    pub(in super::super) const ITERATION_TOKENS: &[f64] =
        &[1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0];
    pub(in super::super) const PARAMS_N: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0];
    pub(in super::super) const PREEMPTIONS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0];
    pub(in super::super) const FIRST_TOKEN_S: &[f64] = &[
        0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
        40.0, 80.0, 160.0, 640.0, 2560.0,
    ];
    pub(in super::super) const PER_TOKEN_S: &[f64] = &[
        0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
        80.0,
    ];
    pub(in super::super) const REQUEST_S: &[f64] = &[
        0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
        480.0, 960.0, 1920.0, 7680.0,
    ];
}

/// Counts per bucket and the sum of all values.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// Values in each bucket alone (not cumulative), the last one unbounded.
    buckets: Box<[AtomicU64]>,
    /// In units of `1 / scale`.
    sum: AtomicU64,
    scale: f64,
}

/// A reading of a histogram.
pub(crate) struct Reading {
    /// Bound and values up to it; the last bound is infinite.
    pub(crate) cumulative: Vec<(f64, u64)>,
    pub(crate) sum: f64,
}

impl Histogram {
    /// Nanoseconds: the sum overflows after 584 years of waiting.
    const SECONDS_SCALE: f64 = 1e9;

    pub(super) fn of_counts(bounds: &'static [f64]) -> Self {
        Self::new(bounds, 1.0)
    }

    pub(super) fn of_seconds(bounds: &'static [f64]) -> Self {
        Self::new(bounds, Self::SECONDS_SCALE)
    }

    fn new(bounds: &'static [f64], scale: f64) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, buckets, sum: AtomicU64::new(0), scale }
    }

    /// Adds the same count `times` times.
    pub(super) fn observe_count(&self, value: u64, times: u64) {
        self.observe(value as f64, value, times);
    }

    /// Adds the same duration `times` times.
    pub(super) fn observe_time(&self, value: Duration, times: u64) {
        self.observe(value.as_secs_f64(), u64::try_from(value.as_nanos()).unwrap_or(u64::MAX), times);
    }

    fn observe(&self, value: f64, scaled: u64, times: u64) {
        let bucket = self.bounds.partition_point(|&bound| bound < value);
        self.buckets[bucket].fetch_add(times, Relaxed);
        self.sum.fetch_add(scaled.wrapping_mul(times), Relaxed);
    }

    /// How many values there were.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Relaxed)).sum()
    }

    pub(crate) fn read(&self) -> Reading {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let mut total = 0;
        let cumulative = bounds
            .zip(&self.buckets)
            .map(|(bound, bucket)| {
                total += bucket.load(Relaxed);
                (bound, total)
            })
            .collect();
        Reading { cumulative, sum: self.sum.load(Relaxed) as f64 / self.scale }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_counts_cumulative() {
        let histogram = Histogram::of_seconds(&[0.5, 1.0]);
        for (millis, times) in [(500, 1), (501, 2), (1500, 1)] {
            histogram.observe_time(Duration::from_millis(millis), times);
        }
        let reading = histogram.read();
        assert_eq!(reading.cumulative, [(0.5, 1), (1.0, 3), (f64::INFINITY, 4)]);
        assert!((reading.sum - 3.002).abs() < 1e-9);
    }
}

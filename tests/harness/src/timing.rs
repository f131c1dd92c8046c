//! Times a piece of work for a benchmark, and prints the figure with its bound beside it.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Measurements of a piece of work; the median of them is its figure.
const MEASUREMENTS: usize = 20;

/// Time that a measurement takes at least: work that is shorter is repeated within it.
const MEASURED_FOR: Duration = Duration::from_millis(50);

/// Prints the microseconds that a piece of work takes: the median, the least and the most of [`MEASUREMENTS`]. Where a bound
/// is given, it stands beside.
pub fn timed<T>(what: &str, bound: Option<Duration>, mut work: impl FnMut() -> T) {
    let mut once = |times: u32| {
        let begun = Instant::now();
        (0..times).for_each(|_| drop(black_box(work())));
        begun.elapsed() / times
    };
    let times = MEASURED_FOR.div_duration_f64(once(1).max(Duration::from_nanos(1))).ceil() as u32;
    let mut measured: Vec<Duration> = (0..MEASUREMENTS).map(|_| once(times.max(1))).collect();
    measured.sort_unstable();
    let us = |duration: Duration| duration.as_secs_f64() * 1e6;
    let bound = bound.map_or_else(String::new, |bound| format!("  (bound {:.1})", us(bound)));
    println!(
        "{what:56} {:12.2} us  ({:.2} to {:.2}){bound}",
        us(measured[MEASUREMENTS / 2]),
        us(measured[0]),
        us(measured[MEASUREMENTS - 1])
    );
}

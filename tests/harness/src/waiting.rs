//! Waits for what gives no event to await: another process, a file, a page.

use std::time::{Duration, Instant};

/// How long an event may take. Reached only if something is broken.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Looks again and again until an event happens.
///
/// # Panics
/// After thirty seconds.
pub fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < WAIT_MAX, "waited in vain until {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

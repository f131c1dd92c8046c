//! Progress of a run on standard error: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows how far a run is.
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
    last_line: Instant,
    started: Instant,
    before: u64,
    failed: u64,
}

impl Progress {
    /// Of `total` dialogues, `before` were done when this process began.
    pub fn new(total: u64, before: u64) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let target = if plain { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(5) };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let template = "{bar:30} {pos}/{len} dialogues, {per_sec}, ETA {eta}{msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_position(before);
        bar.reset_eta();
        let now = Instant::now();
        Self { bar, plain, last_line: now, started: now, before, failed: 0 }
    }

    /// One more dialogue is durable.
    pub fn dialogue(&mut self, scored: bool) {
        self.bar.inc(1);
        if !scored {
            self.failed += 1;
            self.bar.set_message(format!(", {} failed", self.failed));
        }
        if self.plain && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            self.line();
        }
    }

    fn line(&self) {
        let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let rate = (done - self.before) as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        let left = (total - done) as f64 / rate.max(0.001);
        eprintln!("{done}/{total} dialogues, {rate:.0}/s, {} failed, ETA {left:.0} s", self.failed);
    }

    /// Ends the display; the time it took and the dialogues of this process per second.
    pub fn finish(self) -> (Duration, f64) {
        let elapsed = self.started.elapsed();
        let done = self.bar.position() - self.before;
        self.bar.finish_and_clear();
        (elapsed, done as f64 / elapsed.as_secs_f64().max(0.001))
    }
}

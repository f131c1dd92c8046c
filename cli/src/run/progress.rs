//! Progress of a run on standard error: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::fleet::view;

/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows how far a run is.
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
    last_line: Instant,
    started: Instant,
    before: u64,
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
        Self { bar, plain, last_line: now, started: now, before }
    }

    /// So many dialogues are durable by now, `failed` of them without scores.
    pub fn at(&mut self, done: u64, failed: u64) {
        self.bar.set_position(done);
        if failed > 0 {
            self.bar.set_message(format!(", {failed} failed"));
        }
        if self.plain && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            self.line(failed);
        }
    }

    fn line(&self, failed: u64) {
        let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let rate = done.saturating_sub(self.before) as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        let left = total.saturating_sub(done) as f64 / rate;
        let eta = if left.is_finite() { view::duration(left) } else { "unknown".to_owned() };
        eprintln!("{done}/{total} dialogues, {}/s, {failed} failed, ETA {eta}", view::rate(rate));
    }

    /// Ends the display; the time it took and the dialogues of this process per second.
    pub fn finish(self) -> (Duration, f64) {
        let elapsed = self.started.elapsed();
        let done = self.bar.position().saturating_sub(self.before);
        self.bar.finish_and_clear();
        (elapsed, done as f64 / elapsed.as_secs_f64().max(0.001))
    }
}

//! Progress of a run on standard error: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use domain::control::BenchmarkView;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::kit::output::{is_quiet, note};
use crate::kit::view;

/// Interval between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows the progress of a run, as reported by the coordinator.
pub struct ProgressLine {
    bar: ProgressBar,
    plain: bool,
    last_line: Instant,
    started: Instant,
    before: u64,
}

impl ProgressLine {
    /// `begun` is the run when this process begins.
    pub fn new(begun: &BenchmarkView) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let target = if plain || is_quiet() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(5)
        };
        let bar = ProgressBar::with_draw_target(Some(begun.planned), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_position(begun.done());
        let now = Instant::now();
        Self { bar, plain, last_line: now, started: now, before: begun.done() }
    }

    /// Shows the current state of the run.
    pub fn at(&mut self, view: &BenchmarkView) {
        self.bar.set_position(view.done());
        self.bar.set_message(view::progress(view));
        if self.plain && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            note!("{}", view::progress(view));
        }
    }

    /// Ends the display; returns the time that this process took and the number of dialogues it added.
    pub fn finish(self, view: &BenchmarkView) -> (Duration, u64) {
        self.bar.finish_and_clear();
        (self.started.elapsed(), view.done().saturating_sub(self.before))
    }
}

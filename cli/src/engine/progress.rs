//! Progress of a run: on standard error a bar on a terminal, plain lines elsewhere; a file for other processes; and notices.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use domain::control::BenchmarkView;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::engine::notify::{Notify, Telling};
use crate::kit::output::{is_quiet, note};
use crate::kit::view;
use crate::place::live::LiveTeller;

/// Interval between two plain lines, unless something begins to keep the run from going on.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// When the next line is due.
pub struct DueLines {
    last: Option<Instant>,
    /// Whether the last view told of trouble.
    in_trouble: bool,
}

impl DueLines {
    /// After a line at this time, or none.
    pub fn after(last: Option<Instant>) -> Self {
        Self { last, in_trouble: false }
    }

    /// Whether a line of this view is due; it counts as written then.
    pub fn is_due(&mut self, view: &BenchmarkView) -> bool {
        let in_trouble = view::trouble(view).is_some();
        let begins = in_trouble && !self.in_trouble;
        self.in_trouble = in_trouble;
        let is_due = begins || self.last.is_none_or(|last| last.elapsed() >= LINE_EVERY);
        if is_due {
            self.last = Some(Instant::now());
        }
        is_due
    }
}

/// Shows the progress of a run, as reported by the coordinator.
pub struct ProgressLine {
    bar: ProgressBar,
    plain: bool,
    lines: DueLines,
    live: LiveTeller,
    telling: Telling,
    started: Instant,
    before: u64,
}

impl ProgressLine {
    /// `begun` is the run when this process begins.
    pub fn new(begun: &BenchmarkView, data_dir: &Path, notify: &Notify) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let target = if plain || is_quiet() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(5)
        };
        let bar = ProgressBar::with_draw_target(Some(begun.planned), target).with_style(style(false));
        bar.set_position(begun.done());
        let now = Instant::now();
        let (live, telling) = (LiveTeller::new(data_dir), Telling::start(notify));
        let lines = DueLines::after(Some(now));
        Self { bar, plain, lines, live, telling, started: now, before: begun.done() }
    }

    /// Shows the current state of the run.
    pub fn at(&mut self, view: &BenchmarkView) {
        self.live.tell(view);
        self.telling.look(view);
        let trouble = view::trouble(view);
        self.bar.set_style(style(trouble.is_some()));
        self.bar.set_position(view.done());
        self.bar.set_prefix(trouble.unwrap_or_default());
        self.bar.set_message(view::counts_and_pace(view));
        if self.plain && self.lines.is_due(view) {
            note!("{}", view::progress(view));
        }
    }

    /// Ends the display; returns the time that this process took and the number of dialogues it added.
    pub async fn finish(self, view: &BenchmarkView) -> (Duration, u64) {
        self.telling.finish(view).await;
        self.bar.finish_and_clear();
        self.live.end().await;
        (self.started.elapsed(), view.done().saturating_sub(self.before))
    }
}

/// The bar with a line for what keeps the run from going on, or without it.
fn style(in_trouble: bool) -> ProgressStyle {
    let template = if in_trouble { "{bar:20} {wide_msg}\n{prefix}" } else { "{bar:20} {wide_msg}" };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

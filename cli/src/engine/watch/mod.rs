//! Shows a run while it goes on, in lines: one of a fleet, whose coordinator [`follow`] follows through restarts, or one that
//! another process of this machine works at.

mod follow;

use std::io::{self, Write};
use std::time::Duration;

use domain::RunId;
use domain::control::{BenchmarkView, Control};
use follow::ViewFeed;

use crate::engine::ending::exit_code;
use crate::engine::notify::{Notify, Telling};
use crate::engine::progress::DueLines;
use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::screen::Screen;
use crate::kit::view;

/// Silence of a coordinator that is told.
const SILENCE: Duration = Duration::from_secs(5);

/// Shows a run until it ends, or nobody works at it any more, and tells whom it concerns.
pub async fn follow(
    control: &dyn Control,
    run: &RunId,
    json: bool,
    notify: &Notify,
) -> anyhow::Result<ExitCode> {
    let (mut views, mut printed) = (ViewFeed::of(control, run), Printed::new(json));
    let mut telling = Telling::start(notify);
    loop {
        let Ok(view) = tokio::time::timeout(SILENCE, views.next()).await else {
            eprintln!("no answer from the coordinator for {} s", SILENCE.as_secs());
            continue;
        };
        let view = view.map_err(explained)?;
        let ended = printed.next(&view)?;
        telling.look(&view);
        if let Some(code) = ended {
            telling.finish(&view).await;
            return Ok(code);
        }
    }
}

/// What is printed of a run.
struct Printed {
    json: bool,
    lines: DueLines,
}

impl Printed {
    fn new(json: bool) -> Self {
        Self { json, lines: DueLines::after(None) }
    }

    /// Prints a view where a line is due, and the scores below the last one; returns how the run ended then.
    fn next(&mut self, view: &BenchmarkView) -> anyhow::Result<Option<ExitCode>> {
        let is_last = !view.goes_on();
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(view)?)?;
        } else if is_last || self.lines.is_due(view) {
            Screen::here().line(&view::headline(view), &mut out)?;
        }
        if is_last && !self.json {
            writeln!(out)?;
            view::scores(view, |_| None, Screen::here(), &mut out)?;
            view::warn(view);
        }
        Ok(is_last.then(|| exit_code(view, false)))
    }
}

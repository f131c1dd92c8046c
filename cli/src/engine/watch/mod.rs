//! Shows a run while it goes on, in lines: one of a fleet, whose coordinator [`follow`] follows through restarts, or one that
//! another process of this machine works at.

mod follow;

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use domain::RunId;
use domain::control::{BenchmarkView, Control};
use follow::ViewFeed;

use crate::engine::ending::exit_code;
use crate::engine::notify::{Notifier, Notify};
use crate::engine::progress::DueLines;
use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::screen::Screen;
use crate::kit::view;
use crate::place::local;

/// Silence of a coordinator that is told.
const SILENCE: Duration = Duration::from_secs(5);

/// Time between two looks at a run of this machine.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Shows a run until it ends, and sends notices about it to these targets.
pub async fn follow(
    control: &dyn Control,
    run: &RunId,
    json: bool,
    notify: Notify,
) -> anyhow::Result<ExitCode> {
    if notify.is_empty() {
        return show(control, run, json).await;
    }
    let mut notifier = Notifier::new(notify);
    let telling = async {
        let mut views = ViewFeed::of(control, run);
        while let Ok(view) = views.next().await {
            // The end is told below, by nobody who may be stopped on the way.
            if view.phase.is_over() {
                break;
            }
            notifier.look(&view).await;
        }
        std::future::pending::<std::convert::Infallible>().await
    };
    let code = tokio::select! {
        code = show(control, run, json) => code?,
        never = telling => match never {},
    };
    notifier.look_last(&control.view(run).await.map_err(explained)?).await;
    Ok(code)
}

/// Shows a run of this machine until no process works at it any more.
pub fn follow_here(run: &RunId, data_dir: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let mut lines = DueLines::after(None);
    loop {
        let (view, state, live) = local::followed(run, data_dir)?;
        let goes_on = state == local::RUNNING;
        let mut out = io::stdout().lock();
        if json {
            writeln!(out, "{}", serde_json::to_string(&view)?)?;
        } else if !goes_on || lines.is_due(&view) {
            Screen::here().line(&view::headline_here(&view, state, live.is_some()), &mut out)?;
        }
        if !goes_on {
            if !json {
                end(&view, &mut out)?;
            }
            return Ok(exit_code(&view, false));
        }
        drop(out);
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Shows a run of a fleet until it ends.
async fn show(control: &dyn Control, run: &RunId, json: bool) -> anyhow::Result<ExitCode> {
    let mut views = ViewFeed::of(control, run);
    let mut lines = DueLines::after(None);
    loop {
        let Ok(view) = tokio::time::timeout(SILENCE, views.next()).await else {
            eprintln!("no answer from the coordinator for {} s", SILENCE.as_secs());
            continue;
        };
        let view = view.map_err(explained)?;
        let mut out = io::stdout().lock();
        if json {
            writeln!(out, "{}", serde_json::to_string(&view)?)?;
        } else if view.phase.is_over() || lines.is_due(&view) {
            Screen::here().line(&view::headline(&view), &mut out)?;
        }
        if view.phase.is_over() {
            if !json {
                end(&view, &mut out)?;
            }
            return Ok(exit_code(&view, false));
        }
    }
}

/// Prints the final state of a run.
fn end(view: &BenchmarkView, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    view::scores(view, |_| None, Screen::here(), out)?;
    view::warn(view);
    Ok(())
}

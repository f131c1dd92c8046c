//! Shows a run while it goes on.
//!
//! [`follow`] follows the coordinator through restarts. On a terminal, [`screen`] shows the state in [`board`], drawn
//! by [`draw`]; otherwise lines are printed.

mod board;
mod draw;
mod follow;
mod screen;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use board::SILENCE;
use domain::RunId;
use domain::control::{BenchmarkView, Control};
use follow::ViewFeed;

use crate::engine::ending::exit_code;
use crate::engine::notify::{Notifier, Notify};
use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::view;

/// Time between two lines if standard output is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows a run until it ends, and sends notices about it to these targets.
pub async fn follow(
    control: &dyn Control,
    run: &RunId,
    json: bool,
    notify: Notify,
) -> anyhow::Result<ExitCode> {
    if notify.targets.is_empty() {
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

/// Shows a run until it ends: full screen on a terminal, otherwise as lines or JSON.
async fn show(control: &dyn Control, run: &RunId, json: bool) -> anyhow::Result<ExitCode> {
    if !json && screen::is_there() {
        return screen::follow(control, run).await;
    }
    let mut views = ViewFeed::of(control, run);
    let mut last_line: Option<Instant> = None;
    loop {
        let Ok(view) = tokio::time::timeout(SILENCE, views.next()).await else {
            eprintln!("no answer from the coordinator for {} s", SILENCE.as_secs());
            continue;
        };
        let view = view.map_err(explained)?;
        let mut out = io::stdout().lock();
        if json {
            writeln!(out, "{}", serde_json::to_string(&view)?)?;
        } else if view.phase.is_over() || last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
            last_line = Some(Instant::now());
            writeln!(out, "{}", view::headline(&view))?;
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
    view::scores(view, |_| None, out)?;
    view::warn(view);
    Ok(())
}

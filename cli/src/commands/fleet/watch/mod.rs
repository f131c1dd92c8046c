//! `kgfleet status` and `kgfleet watch`.
//!
//! [`follow`] follows the coordinator through restarts. On a terminal, [`screen`] shows the state in [`board`], drawn
//! by [`draw`]; otherwise lines are printed.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use domain::RunId;
use domain::control::{BenchmarkView, Control, RunPhase};

mod board;
mod draw;
mod follow;
mod screen;

use board::SILENCE;
use follow::ViewFeed;

use super::{Remote, block_on, explained, view};
use crate::exit_code::ExitCode;
use crate::notify::{Notifier, Notify};
use crate::run_name;

/// Time between two lines if standard output is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Show the status of runs.
#[derive(Debug, clap::Args)]
pub struct StatusArguments {
    /// Name of a run, to show its models and scores. Default: all runs, one line each.
    run: Option<String>,
    /// Print JSON: one object, or one line for each run.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Follow a run until it ends.
///
/// On a terminal: full screen, with lists of models, workers and failures. Tab, Left, Right, 1, 2 and 3 change the
/// list; Up, Down, PageUp, PageDown, Home and End (also k, j, g, G) move the selection, which is shown in full; q or
/// Escape leaves. The run continues without a watcher. Elsewhere: a line every ten seconds.
///
/// If the coordinator does not answer, the command keeps trying, and the screen shows for how long.
///
/// Exit codes: 0 finished, or left; 1 finished with failed dialogues; 130 cancelled, or interrupted.
#[derive(Debug, clap::Args)]
pub struct WatchArguments {
    /// Name of the run, or its beginning if no other run begins like it. Default: the newest one.
    run: Option<String>,
    #[command(flatten)]
    notify: Notify,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// `kgfleet status`.
pub fn status(arguments: StatusArguments) -> anyhow::Result<ExitCode> {
    block_on(async {
        let client = arguments.remote.client()?;
        let mut out = io::stdout().lock();
        if let Some(run) = arguments.run {
            let run = run_name::of_coordinator(&run, &client).await?;
            let found = client.run(&run).await.map_err(explained)?;
            if arguments.json {
                writeln!(out, "{}", serde_json::to_string(&found)?)?;
            } else {
                writeln!(out, "{}\n", view::headline(&found))?;
                view::models(&found).write(&mut out)?;
                writeln!(out)?;
                view::scores(&found, |_| None, &mut out)?;
                writeln!(out)?;
                view::history(&found, &mut out)?;
                view::warn(&found);
            }
            return Ok(ExitCode::Success);
        }
        let runs = client.runs().await.map_err(explained)?;
        if arguments.json {
            for run in &runs {
                writeln!(out, "{}", serde_json::to_string(run)?)?;
            }
        } else {
            view::runs(&runs).write(&mut out)?;
        }
        Ok(ExitCode::Success)
    })
}

/// `kgfleet watch`.
pub fn watch(arguments: WatchArguments) -> anyhow::Result<ExitCode> {
    block_on(async {
        let client = arguments.remote.client()?;
        let run = match arguments.run {
            Some(run) => run_name::of_coordinator(&run, &client).await?,
            None => match client.runs().await.map_err(explained)?.pop() {
                Some(newest) => newest.run,
                None => {
                    eprintln!("the coordinator has no runs; `kgfleet submit CONFIG` starts one");
                    return Ok(ExitCode::Success);
                }
            },
        };
        follow(&client, &run, arguments.json, arguments.notify).await
    })
}

/// Shows a run until it ends, and tells these targets what becomes of it.
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
    notifier.look_last(&control.run(run).await.map_err(explained)?).await;
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
            return Ok(code(&view));
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

/// The exit code of a run that is over.
fn code(view: &BenchmarkView) -> ExitCode {
    match (view.phase, view.failed) {
        (RunPhase::Cancelled, _) => ExitCode::Interrupted,
        (_, 0) => ExitCode::Success,
        _ => ExitCode::Unsatisfied,
    }
}

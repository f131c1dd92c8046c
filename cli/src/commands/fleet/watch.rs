//! `kgfleet status` and `kgfleet watch`.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use domain::RunId;
use domain::control::{Control, RunPhase, RunView};
use futures::StreamExt;

use super::{Remote, block_on, explained, view};
use crate::exit_code::ExitCode;

/// Between two lines where standard output is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Calls of a watch that may fail in a row, a second apart: a coordinator that is restarted is back by then.
const RECONNECTS_MAX: u32 = 120;

/// Show where runs stand.
#[derive(Debug, clap::Args)]
pub struct StatusArguments {
    /// Name of a run: its models and scores. Default: all runs, one line each.
    run: Option<String>,
    /// Print JSON: one object, or one line for each run.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Follow a run until it ends.
///
/// Exit codes: 0 finished; 1 finished with failed dialogues; 130 cancelled.
#[derive(Debug, clap::Args)]
pub struct WatchArguments {
    /// Name of the run. Default: the newest one.
    run: Option<String>,
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
            let found = client.run(&RunId::new(run)).await.map_err(explained)?;
            if arguments.json {
                writeln!(out, "{}", serde_json::to_string(&found)?)?;
            } else {
                writeln!(out, "{}\n", view::headline(&found))?;
                view::models(&found, &mut out)?;
                writeln!(out)?;
                view::scores(&found, &mut out)?;
                writeln!(out)?;
                view::history(&found, &mut out)?;
            }
            return Ok(ExitCode::Success);
        }
        let runs = client.runs().await.map_err(explained)?;
        if arguments.json {
            for run in &runs {
                writeln!(out, "{}", serde_json::to_string(run)?)?;
            }
        } else {
            view::runs(&runs, &mut out)?;
        }
        Ok(ExitCode::Success)
    })
}

/// `kgfleet watch`.
pub fn watch(arguments: WatchArguments) -> anyhow::Result<ExitCode> {
    block_on(async {
        let client = arguments.remote.client()?;
        let run = match arguments.run {
            Some(run) => RunId::new(run),
            None => match client.runs().await.map_err(explained)?.pop() {
                Some(newest) => newest.run,
                None => {
                    eprintln!("the coordinator has no runs; `kgfleet submit CONFIG` begins one");
                    return Ok(ExitCode::Success);
                }
            },
        };
        follow(&client, &run, arguments.json).await
    })
}

/// Shows a run until it ends. A coordinator that goes away is waited for: the run goes on without a listener.
pub async fn follow(control: &dyn Control, run: &RunId, json: bool) -> anyhow::Result<ExitCode> {
    let mut screen = Screen::new(json);
    let mut failures = 0;
    loop {
        let mut feed = control.watch(run);
        while let Some(next) = feed.next().await {
            match next {
                Ok(view) => {
                    failures = 0;
                    screen.show(&view)?;
                    if view.phase.is_over() {
                        return Ok(screen.end(&view)?);
                    }
                }
                Err(error) if error.code.is_transient() && failures < RECONNECTS_MAX => {
                    tracing::info!(%error, "the coordinator does not answer");
                    break;
                }
                Err(error) => return Err(explained(error)),
            }
        }
        failures += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Where a run is shown: a table that is drawn anew on a terminal, lines elsewhere.
struct Screen {
    json: bool,
    terminal: bool,
    /// Lines of the table on the screen.
    drawn: usize,
    last_line: Option<Instant>,
}

impl Screen {
    fn new(json: bool) -> Self {
        Self { json, terminal: io::stdout().is_terminal(), drawn: 0, last_line: None }
    }

    fn show(&mut self, view: &RunView) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(view)?)?;
            return Ok(());
        }
        if !self.terminal {
            if self.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
                self.last_line = Some(Instant::now());
                writeln!(out, "{}", view::headline(view))?;
            }
            return Ok(());
        }
        let mut text = Vec::new();
        writeln!(text, "{}\n", view::headline(view))?;
        view::models(view, &mut text)?;
        if self.drawn > 0 {
            // Back to the first line of the table, and everything below it cleared (ECMA-48 CPL and ED).
            write!(out, "\x1b[{}F\x1b[J", self.drawn)?;
        }
        out.write_all(&text)?;
        out.flush()?;
        self.drawn = text.iter().filter(|byte| **byte == b'\n').count();
        Ok(())
    }

    fn end(&self, view: &RunView) -> io::Result<ExitCode> {
        let mut out = io::stdout().lock();
        if !self.json {
            if !self.terminal {
                writeln!(out, "{}", view::headline(view))?;
            }
            writeln!(out)?;
            view::scores(view, &mut out)?;
        }
        Ok(match (view.phase, view.failed) {
            (RunPhase::Cancelled, _) => ExitCode::Interrupted,
            (_, 0) => ExitCode::Success,
            _ => ExitCode::Unsatisfied,
        })
    }
}

//! `kgfleet status`.

use std::io::{self, Write};

use domain::control::Control;
use report::views::Grid;

use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::runtime::block_on;
use crate::kit::screen::Screen;
use crate::kit::view;
use crate::place::names;
use crate::place::remote::Remote;

/// Show the status of runs.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name of a run, to show its models and scores. Default: all runs, one line each.
    run: Option<String>,
    /// Print JSON: one object, or one line for each run.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// `kgfleet status`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    block_on(async {
        let client = arguments.remote.client()?;
        let mut out = io::stdout().lock();
        if let Some(run) = arguments.run {
            let run = names::of_coordinator(&run, &client).await?;
            let found = client.view(&run).await.map_err(explained)?;
            if arguments.json {
                writeln!(out, "{}", serde_json::to_string(&found)?)?;
            } else {
                let screen = Screen::here();
                screen.line(&view::headline(&found), &mut out)?;
                if let Some(share) = view::share(&found) {
                    screen.line(&share, &mut out)?;
                }
                writeln!(out)?;
                screen.table(&view::models(&found), &mut out)?;
                if let Some(pools) = view::pools(&found) {
                    writeln!(out)?;
                    screen.table(&pools, &mut out)?;
                }
                writeln!(out)?;
                screen.table(&Grid::of_view(&found, |_| None).table(), &mut out)?;
                view::failures(&found, &mut out)?;
                if !found.runs.is_empty() {
                    writeln!(out)?;
                    screen.table(&view::stage_runs(&found), &mut out)?;
                }
                writeln!(out)?;
                view::history(&found, &mut out)?;
                view::warn(&found);
            }
            return Ok(ExitCode::Success);
        }
        let runs = client.list().await.map_err(explained)?;
        if arguments.json {
            for run in &runs {
                writeln!(out, "{}", serde_json::to_string(run)?)?;
            }
        } else {
            Screen::here().table(&view::runs(&runs), &mut out)?;
        }
        Ok(ExitCode::Success)
    })
}

//! `kgfleet runs`.

use std::io::{self, Write};

use anyhow::anyhow;
use benchmarks::names::benchmark_of;
use domain::RunId;
use domain::control::RunPhase;
use jiff::Timestamp;
use results::RunDir;
use results::run_dir::FoundRun;
use serde_json::json;

use crate::kit::exit_code::ExitCode;
use crate::kit::output::{Table, explain};
use crate::place::data_dir::DataDir;
use crate::place::{folders, local};

/// List the runs and pipelines of this machine, the oldest first.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// List the runs of the pipelines' stages too.
    #[arg(long)]
    stages: bool,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: DataDir,
}

/// A run or pipeline in the list.
struct Listed {
    run: RunId,
    started: Timestamp,
    name: String,
    planned: u64,
    scored: u64,
    failed: u64,
    state: &'static str,
}

/// `kgfleet runs`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let found = RunDir::list(arguments.data.path())?;
    let mut listed = Vec::new();
    for view in local::all(arguments.data.path())? {
        let busy = |found: &FoundRun| found.dir.lock().is_err();
        let is_of_it = |found: &FoundRun| local::is_run_of(&found.dir.run(), view.run.as_str());
        listed.push(Listed {
            state: match view.phase {
                RunPhase::Preparing | RunPhase::Active => {
                    if found.iter().any(|run| is_of_it(run) && busy(run)) { "running" } else { "interrupted" }
                }
                phase => phase.as_str(),
            },
            run: view.run,
            started: view.created_at,
            name: view.name,
            planned: view.planned,
            scored: view.scored,
            failed: view.failed,
        });
    }
    for found in found {
        if !arguments.stages && benchmark_of(&found.dir.run()) != found.dir.run() {
            continue;
        }
        match list_run(&found) {
            Ok(run) => listed.push(run),
            Err(error) => eprintln!("{}: {}", found.dir.path().display(), explain(&error)),
        }
    }
    listed.sort_by(|a, b| (a.started, &a.run).cmp(&(b.started, &b.run)));

    let mut out = io::stdout().lock();
    if arguments.json {
        for Listed { run, started, name, planned, scored, failed, state } in listed {
            let line = json!({
                "run": run, "started": started, "name": name, "state": state,
                "planned": planned, "scored": scored, "failed": failed,
            });
            writeln!(out, "{line}")?;
        }
        return Ok(ExitCode::Success);
    }
    let mut table = Table::default()
        .left(["run", "started", "name"])
        .right(["dialogues", "scored", "failed"])
        .left(["state"]);
    for Listed { run, started, name, planned, scored, failed, state } in listed {
        table.row(vec![
            run.to_string(),
            started.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            name,
            planned.to_string(),
            scored.to_string(),
            failed.to_string(),
            state.to_owned(),
        ]);
    }
    table.write(&mut out)?;
    Ok(ExitCode::Success)
}

/// A run in the list, from its record log.
fn list_run(found: &FoundRun) -> anyhow::Result<Listed> {
    let manifest = found.manifest.as_ref().map_err(|error| anyhow!("{error}"))?;
    let index = folders::recorded(&found.dir, manifest)?;
    let (scored, all) = (index.scored() as u64, index.len() as u64);
    let name = manifest.configuration.get("name").and_then(|name| name.as_str()).unwrap_or("-");
    Ok(Listed {
        run: manifest.run.clone(),
        started: manifest.created_at,
        name: name.to_owned(),
        planned: manifest.planned_dialogues,
        scored,
        failed: all - scored,
        state: if all >= manifest.planned_dialogues {
            "finished"
        } else if found.dir.lock().is_err() {
            "running"
        } else {
            "interrupted"
        },
    })
}

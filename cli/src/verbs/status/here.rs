//! The runs of a folder of this machine.

use std::io::{self, Write};
use std::path::Path;

use anyhow::anyhow;
use benchmarks::names::benchmark_of;
use domain::control::BenchmarkView;
use domain::{RunId, machine};
use jiff::Timestamp;
use report::costs::Prices;
use results::RunDir;
use results::run_dir::FoundRun;
use serde::Serialize;
use serde_json::json;

use super::shown;
use crate::kit::exit_code::ExitCode;
use crate::kit::output::{Table, explain, printable};
use crate::kit::screen::Screen;
use crate::kit::view;
use crate::place::disk::{self, DiskForecast};
use crate::place::{folders, local, names};

/// The state of a run or pipeline that cannot be read.
const UNREADABLE: &str = "unreadable";

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

/// A run or pipeline as JSON: what a coordinator tells of one, and what is known only where it lies.
#[derive(Serialize)]
struct BenchmarkHere<'a> {
    #[serde(flatten)]
    view: &'a BenchmarkView,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<DiskForecast>,
}

/// Lists all runs and pipelines, the oldest first.
pub(super) fn list(data_dir: &Path, stages: bool, json: bool) -> anyhow::Result<ExitCode> {
    let found = RunDir::list(data_dir)?;
    let mut listed = Vec::new();
    for view in local::all(data_dir)? {
        if let Some(trouble) = &view.trouble {
            eprintln!("{}: {}", view.run, printable(trouble));
        }
        listed.push(Listed {
            state: if view.trouble.is_some() { UNREADABLE } else { local::state_of(&view, &found) },
            run: view.run,
            started: view.created_at,
            name: view.name,
            planned: view.planned,
            scored: view.scored,
            failed: view.failed,
        });
    }
    for found in found {
        if !stages && benchmark_of(&found.dir.run()) != found.dir.run() {
            continue;
        }
        match list_run(&found) {
            Ok(run) => listed.push(run),
            Err(error) => {
                eprintln!("{}: {}", found.dir.path().display(), explain(&error));
                let (run, started) = (found.dir.run(), names::began(&found.dir).unwrap_or_default());
                let name = "-".to_owned();
                listed.push(Listed {
                    run,
                    started,
                    name,
                    planned: 0,
                    scored: 0,
                    failed: 0,
                    state: UNREADABLE,
                });
            }
        }
    }
    listed.sort_by(|a, b| (a.started, &a.run).cmp(&(b.started, &b.run)));

    let mut out = io::stdout().lock();
    if json {
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
    Screen::here().table(&table, &mut out)?;
    Ok(ExitCode::Success)
}

/// Shows one of them.
pub(super) fn show(wanted: &str, data_dir: &Path, prices: &Prices, json: bool) -> anyhow::Result<ExitCode> {
    let name = names::of_folder(wanted, data_dir)?;
    let (view, state, live) = local::followed(&name, data_dir)?;
    let disk = disk::forecast(&view, data_dir)?;
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(&BenchmarkHere { view: &view, state, disk })?)?;
        return Ok(ExitCode::Success);
    }
    // What judges are to be asked follows from what was answered.
    let open_end = if view.runs.is_empty() { "" } else { "; stages that have not begun come on top" };
    let records = disk.map(|forecast| format!("records: {forecast}{open_end}"));
    let silence = live.as_ref().and_then(|live| live.silence(machine::now()));
    let headline = view::headline_here(&view, state, live.is_some());
    let head = [Some(headline), silence, view::limits(&view), records, view::spent(&view, prices)];
    shown::show(&view, false, head.into_iter().flatten(), &mut out)?;
    if let Some(forecast) = disk.filter(|forecast| !forecast.fits()) {
        eprintln!(
            "warning: the records to come do not fit on the disk of {}: {forecast}",
            data_dir.display()
        );
    }
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

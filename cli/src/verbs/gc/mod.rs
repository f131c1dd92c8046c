//! `kgfleet gc`: `found` reads what lies in the folders, `plan` decides what of it goes, `remove` removes that.

mod found;
mod plan;
mod remove;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::json;

use self::plan::{DAY_SECONDS, Removal};
use self::remove::GcResult;
use crate::kit::exit_code::ExitCode;
use crate::kit::output::{Table, note, say};
use crate::place::data_dir::DataDir;

/// Remove what nothing refers to: packs of no run, spools without records, files of killed processes; with --older-than, old
/// runs too. Without --apply, it is only listed.
///
/// Exit codes: 0 listed, or removed; 1 something could not be removed; 3 a folder cannot be read.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Also runs and pipelines that are over and ended at least so many days ago.
    #[arg(long, value_name = "DAYS")]
    older_than: Option<u32>,
    /// Remove what is listed.
    #[arg(long)]
    apply: bool,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Working folder of the workers of this machine, as for `kgfleet worker`.
    #[arg(long, value_name = "DIR", env = "KGFLEET_WORK_DIR", default_value = "kgfleet-work")]
    work_dir: PathBuf,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet gc`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { older_than, apply, json, work_dir, data } = arguments;
    let older_than = older_than.map(|days| Duration::from_secs(u64::from(days) * DAY_SECONDS));
    let found = found::read(data.path(), &work_dir, older_than.is_some())?;
    let plan = plan::plan(&found, SystemTime::now(), older_than);
    plan.kept.iter().for_each(|why| say(why));
    let GcResult { gone, left, later } = match apply {
        true => remove::all(data.path(), &work_dir, plan.removals)?,
        false => GcResult { gone: plan.removals, ..GcResult::default() },
    };
    left.iter().chain(&later).for_each(|why| say(why));
    let bytes: u64 = gone.iter().map(|removal| removal.bytes).sum();
    let mut out = io::stdout().lock();
    if json {
        let items: Vec<_> = gone.iter().map(as_json).collect();
        let kept: Vec<&String> = plan.kept.iter().chain(&left).chain(&later).collect();
        writeln!(out, "{}", json!({ "applied": apply, "bytes": bytes, "items": items, "kept": kept }))?;
    } else {
        table(&gone, bytes).write(&mut out)?;
    }
    let (count, mega) = (gone.len(), bytes >> 20);
    match (apply, count) {
        (true, _) => note!("{bytes} bytes ({mega} MB) freed"),
        (false, 0) => note!("nothing is to be removed"),
        (false, _) => note!("{count} of these, {bytes} bytes ({mega} MB); `--apply` removes them"),
    }
    Ok(if left.is_empty() { ExitCode::Success } else { ExitCode::Unsatisfied })
}

fn as_json(removal: &Removal) -> serde_json::Value {
    let Removal { kind, path, bytes, why, .. } = removal;
    json!({ "what": kind.name(), "path": path.to_string_lossy(), "bytes": bytes, "why": why })
}

fn table(removals: &[Removal], bytes: u64) -> Table {
    let mut table = Table::default().left(["what", "path"]).right(["bytes"]).left(["why"]);
    for removal in removals {
        table.row(vec![
            removal.kind.name().to_owned(),
            removal.path.to_string_lossy().into_owned(),
            removal.bytes.to_string(),
            removal.why.clone(),
        ]);
    }
    table.total(vec!["sum".to_owned(), String::new(), bytes.to_string(), String::new()]);
    table
}

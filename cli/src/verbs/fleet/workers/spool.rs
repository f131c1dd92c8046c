//! `kgfleet fleet workers spool`: undelivered records of the workers on this machine.

use std::io::{self, Write};
use std::path::PathBuf;

use domain::RunId;
use serde_json::json;
use worker::outbox::spools;

use crate::kit::exit_code::ExitCode;
use crate::kit::output::{Table, note};
use crate::kit::screen::Screen;

/// List or drop undelivered records of the workers on this machine.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List undelivered records by worker and run.
    ///
    /// Acknowledged records are counted until the segment that holds them is deleted.
    List(ListArguments),
    /// Delete undelivered records of workers that are not running. Their dialogues are asked again if their run
    /// continues.
    Drop(DropArguments),
}

#[derive(Debug, clap::Args)]
struct Place {
    /// Working folder of the workers, as for `kgfleet worker`.
    #[arg(long, alias = "dir", value_name = "DIR", env = "KGFLEET_WORK_DIR", default_value = "kgfleet-work")]
    work_dir: PathBuf,
}

#[derive(Debug, clap::Args)]
struct ListArguments {
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct DropArguments {
    /// Only records of this run. Default: all.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    place: Place,
}

impl Place {
    fn spools(&self) -> anyhow::Result<Vec<spools::SpoolFolder>> {
        Ok(spools::survey(&self.work_dir.join("spool"))?)
    }
}

/// `kgfleet fleet workers spool`.
pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::List(arguments) => list(&arguments),
        Command::Drop(arguments) => drop_records(&arguments),
    }
}

fn list(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut table = Table::default().left(["worker", "run"]).right(["records", "bytes"]).left([""]);
    for found in arguments.place.spools()? {
        let worker = found.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (run, held) in &found.runs {
            if arguments.json {
                let line = json!({
                    "worker": worker, "run": run, "records": held.records, "bytes": held.bytes,
                    "in_use": found.in_use,
                });
                writeln!(out, "{line}")?;
                continue;
            }
            let remark = if found.in_use { "the worker runs" } else { "" };
            table.row(vec![
                worker.clone(),
                run.to_string(),
                held.records.to_string(),
                held.bytes.to_string(),
                remark.to_owned(),
            ]);
        }
    }
    if !arguments.json {
        Screen::here().table(&table, &mut out)?;
    }
    Ok(ExitCode::Success)
}

fn drop_records(arguments: &DropArguments) -> anyhow::Result<ExitCode> {
    let run = arguments.run.as_deref().map(RunId::new);
    let meant = |found: &spools::SpoolFolder| match &run {
        Some(run) => found.runs.contains_key(run),
        None => !found.runs.is_empty(),
    };
    let mut left = false;
    for found in arguments.place.spools()?.into_iter().filter(meant) {
        match spools::drop_records(&found.dir, run.as_ref()) {
            Ok(dropped) => note!("{}: {dropped} records dropped", found.dir.display()),
            Err(error) => {
                left = true;
                eprintln!("kgfleet: {error}; stop the worker first to drop its records");
            }
        }
    }
    Ok(if left { ExitCode::Unsatisfied } else { ExitCode::Success })
}

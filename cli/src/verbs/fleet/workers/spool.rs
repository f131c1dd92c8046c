//! `kgfleet fleet workers spool`: undelivered records of the workers on this machine.

use std::path::PathBuf;

use domain::RunId;
use serde::Serialize;
use worker::outbox::spools::{self, SpoolFolder};

use crate::kit::exit_code::ExitCode;
use crate::kit::output::{Table, note};
use crate::kit::screen::print_all;

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
    fn spools(&self) -> anyhow::Result<Vec<SpoolFolder>> {
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

/// Undelivered records of a run that a worker has.
#[derive(Serialize)]
struct HeldLine {
    worker: String,
    run: RunId,
    records: u64,
    bytes: u64,
    in_use: bool,
}

fn list(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let mut lines = Vec::new();
    for SpoolFolder { dir, in_use, runs } in arguments.place.spools()? {
        let worker = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        lines.extend(runs.into_iter().map(|(run, held)| {
            let (records, bytes) = (held.records, held.bytes);
            HeldLine { worker: worker.clone(), run, records, bytes, in_use }
        }));
    }
    print_all(&lines, arguments.json, |lines| {
        let mut table = Table::default().left(["worker", "run"]).right(["records", "bytes"]).left([""]);
        for HeldLine { worker, run, records, bytes, in_use } in lines {
            let remark = if *in_use { "the worker runs" } else { "" };
            table.row([worker.as_str(), run.as_str(), &records.to_string(), &bytes.to_string(), remark]);
        }
        table
    })?;
    Ok(ExitCode::Success)
}

fn drop_records(arguments: &DropArguments) -> anyhow::Result<ExitCode> {
    let run = arguments.run.as_deref().map(RunId::new);
    let meant = |found: &SpoolFolder| match &run {
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

//! `kgfleet workers` and `kgfleet drain`.

use std::io::{self, Write};

use domain::WorkerId;
use domain::control::{Control, WorkerView};

use super::{Remote, block_on, explained};
use crate::exit_code::ExitCode;
use crate::output::{Align, Table, duration, printable};

/// List the workers of a coordinator.
#[derive(Debug, clap::Args)]
pub struct WorkersArguments {
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Ask a worker to finish what it holds and end.
#[derive(Debug, clap::Args)]
pub struct DrainArguments {
    /// Name of the worker, see `kgfleet workers`.
    worker: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// `kgfleet workers`.
pub fn workers(arguments: WorkersArguments) -> anyhow::Result<ExitCode> {
    block_on(async {
        let client = arguments.remote.client()?;
        let workers = client.workers().await.map_err(explained)?;
        let mut out = io::stdout().lock();
        let mut table = Table::new(&[
            ("worker", Align::Left),
            ("host", Align::Left),
            ("serves", Align::Left),
            ("in flight", Align::Right),
            ("limit", Align::Right),
            ("dialogues", Align::Right),
            ("unacknowledged", Align::Right),
            ("parked", Align::Right),
            ("seen", Align::Right),
            ("", Align::Left),
        ]);
        for worker in &workers {
            if arguments.json {
                writeln!(out, "{}", serde_json::to_string(worker)?)?;
                continue;
            }
            let status = &worker.status;
            table.row(vec![
                worker.worker.to_string(),
                printable(&status.host),
                printable(&shortened(&status.serves)),
                status.in_flight.to_string(),
                status.limit.to_string(),
                status.dialogues.to_string(),
                status.unacknowledged.to_string(),
                status.parked_records.to_string(),
                format!("{} ago", duration(worker.seen_ms_ago as f64 / 1e3)),
                remark(worker),
            ]);
        }
        if !arguments.json {
            table.write(&mut out)?;
        }
        Ok(ExitCode::Success)
    })
}

/// Remarks about a worker besides its numbers.
pub fn remark(worker: &WorkerView) -> String {
    let status = &worker.status;
    let draining = worker.draining.then(|| "draining".to_owned());
    let keys = (!status.lacks.is_empty()).then(|| format!("lacks keys: {}", status.lacks.join("; ")));
    let told: Vec<String> = [draining, status.trouble.clone(), keys].into_iter().flatten().collect();
    printable(&told.join("; "))
}

/// The first of many names, and how many more there are.
pub fn shortened(names: &[String]) -> String {
    match names {
        [] => "-".to_owned(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// `kgfleet drain`.
pub fn drain(arguments: DrainArguments) -> anyhow::Result<ExitCode> {
    block_on(async {
        let client = arguments.remote.client()?;
        client.drain_worker(&WorkerId::new(&*arguments.worker)).await.map_err(explained)?;
        if arguments.json {
            writeln!(
                io::stdout(),
                "{}",
                serde_json::json!({ "worker": arguments.worker, "draining": true })
            )?;
        }
        eprintln!("worker {} was asked to drain; `kgfleet workers` shows when it is gone", arguments.worker);
        Ok(ExitCode::Success)
    })
}

//! `kgfleet workers` and `kgfleet drain`.

use std::io::{self, Write};

use domain::WorkerId;
use domain::control::Control;
use report::views::fleet;

use super::{Remote, block_on, explained};
use crate::exit_code::ExitCode;

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
        for worker in workers.iter().filter(|_| arguments.json) {
            writeln!(out, "{}", serde_json::to_string(worker)?)?;
        }
        if !arguments.json {
            fleet::workers(&workers).write(&mut out)?;
        }
        Ok(ExitCode::Success)
    })
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

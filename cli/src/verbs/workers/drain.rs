//! `kgfleet workers drain`.

use std::io::{self, Write};

use domain::WorkerId;
use domain::control::Control;

use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::output::note;
use crate::kit::runtime::block_on;
use crate::place::remote::Remote;

/// Ask a worker to finish what it holds and end.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Name of the worker, see `kgfleet workers`.
    worker: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// `kgfleet workers drain`.
pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
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
        note!("worker {} was asked to drain; `kgfleet workers` shows when it is gone", arguments.worker);
        Ok(ExitCode::Success)
    })
}

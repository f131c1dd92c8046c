//! `kgfleet workers`.

use std::io::{self, Write};

use domain::control::Control;
use report::tables::fleet;

use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::runtime::block_on;
use crate::place::remote::Remote;

/// List the workers of a coordinator.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// `kgfleet workers`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
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

//! `kgfleet submit`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use domain::control::{Control, Submission};

use super::{Remote, block_on, explained, view, watch};
use crate::commands::run::Selection;
use crate::exit_code::{Exit, ExitCode};
use crate::run::material::CORE;

/// Queue a run at a coordinator.
///
/// Joins an unfinished run of the same configuration. Exit codes: 0 queued; with --watch as for `kgfleet watch`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file (TOML or YAML, or LLM-KG-Bench's configuration.yml), or `quick` for the bundled one.
    config: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Watch the run until it ends.
    #[arg(long)]
    watch: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let benchmark = arguments.selection.benchmark(Some(&arguments.config))?;
    let pack: Option<Arc<[u8]>> = if benchmark.pack == CORE {
        None
    } else {
        let bytes = std::fs::read(&benchmark.pack)
            .with_context(|| format!("cannot read the pack {}", benchmark.pack))
            .map_err(Exit::usage)?;
        Some(bytes.into())
    };
    let submission = Submission { configuration: serde_json::to_value(&benchmark)?, pack };
    block_on(async {
        let client = arguments.remote.client()?;
        let queued = client.submit(submission).await.map_err(explained)?;
        if arguments.watch {
            eprintln!("{}", view::headline(&queued));
            return watch::follow(&client, &queued.run, arguments.json).await;
        }
        let mut out = io::stdout().lock();
        if arguments.json {
            writeln!(out, "{}", serde_json::to_string(&queued)?)?;
        } else {
            writeln!(out, "{}", queued.run)?;
            eprintln!("{}; `kgfleet watch {}` follows it", view::headline(&queued), queued.run);
        }
        Ok(ExitCode::Success)
    })
}

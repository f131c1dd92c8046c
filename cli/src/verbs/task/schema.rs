//! `kgfleet task schema`.

use std::io::{self, Write};

use crate::kit::exit_code::ExitCode;

/// Print the JSON Schema of task files, by which editors complete and check them.
///
/// A line `#:schema PATH` at the top of a task file names it for editors that use Taplo or Tombi.
///
/// Exit codes: 0 printed.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {}

pub(super) fn run(_arguments: &Arguments) -> anyhow::Result<ExitCode> {
    writeln!(io::stdout().lock(), "{}", serde_json::to_string_pretty(packs::task_files::schema::schema())?)?;
    Ok(ExitCode::Success)
}

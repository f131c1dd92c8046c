//! `kgfleet task list`.

use std::io;
use std::path::PathBuf;

use task_files::CompiledTask;

use crate::kit::exit_code::{Exit, ExitCode};
use crate::kit::output::Table;

/// List the tasks of a task file with their cases and checks.
///
/// Exit codes: 0 listed; 2 the file cannot be used.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The task file.
    file: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let compiled = task_files::compile(&arguments.file).map_err(Exit::usage)?;
    let mut table =
        Table::default().left(["task", "preset"]).right(["cases", "asked"]).left(["checks (weight)"]);
    for task in &compiled.tasks {
        let cases = task.data.cases.len();
        table.row([
            task.data.label.to_string(),
            task.preset.unwrap_or_default().to_owned(),
            cases.to_string(),
            (cases * compiled.repeats as usize).to_string(),
            checks(task),
        ]);
    }
    table.write(&mut io::stdout().lock())?;
    Ok(ExitCode::Success)
}

fn checks(task: &CompiledTask) -> String {
    let check = |check: &tasks::families::declared::spec::CheckSpec| {
        let gate = if check.gate { ", gate" } else { "" };
        format!("{} ({}{gate})", check.name, check.weight)
    };
    task.checks.iter().map(check).collect::<Vec<_>>().join(", ")
}

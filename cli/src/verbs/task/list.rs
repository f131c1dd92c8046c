//! `kgfleet task list`.

use std::io;
use std::path::PathBuf;

use packs::task_files::CompiledTask;
use tasks::families::declared::spec::JudgedWhen;

use crate::kit::exit_code::{Exit, ExitCode};
use crate::kit::output::Table;
use crate::kit::screen::Screen;

/// List the tasks of a task file with their cases and checks.
///
/// Exit codes: 0 listed; 2 the file cannot be used.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The task file.
    file: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let compiled = packs::task_files::compile(&arguments.file).map_err(Exit::usage)?;
    let mut table = Table::default()
        .left(["task", "preset"])
        .right(["cases", "asked"])
        .left(["checks (weight)", "judge (weight)"]);
    for task in &compiled.tasks {
        let cases = task.data.cases.len();
        table.row([
            task.data.label.to_string(),
            task.preset.unwrap_or_default().to_owned(),
            cases.to_string(),
            (cases * compiled.repeats as usize).to_string(),
            checks(task),
            judge(task),
        ]);
    }
    Screen::here().table(&table, &mut io::stdout().lock())?;
    Ok(ExitCode::Success)
}

fn checks(task: &CompiledTask) -> String {
    let check = |check: &tasks::families::declared::spec::CheckSpec| {
        let gate = if check.gate { ", gate" } else { "" };
        format!("{} ({}{gate})", check.name, check.weight)
    };
    task.checks.iter().map(|spec| check(spec)).collect::<Vec<_>>().join(", ")
}

/// Which answers a judge grades, and its share of the result; nothing where none is asked.
fn judge(task: &CompiledTask) -> String {
    task.judge().map_or_else(String::new, |judge| {
        let when = match judge.when {
            JudgedWhen::Readable => "readable",
            JudgedWhen::Imperfect => "imperfect",
            JudgedWhen::Always => "always",
        };
        format!("{when} ({})", judge.weight)
    })
}

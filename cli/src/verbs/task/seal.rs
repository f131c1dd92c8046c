//! `kgfleet task seal`.

use std::io::{self, Write};
use std::path::PathBuf;

use packs::seal_file;

use crate::kit::exit_code::{ExitCode, usage};
use crate::place::packs::{PackPassword, as_exit};
use crate::place::task_files;

/// Seal a task file into a pack, with the plaintext manifest beside it, to publish instead of the file. Prints the pack's hash.
///
/// The file must state its licence and a canary, and its answers of known score must get it.
///
/// Exit codes: 0 sealed; 2 the file cannot be used, or lacks something; 3 a file cannot be written.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The task file.
    file: PathBuf,
    /// The pack file to write. Default: the task file with the ending `.kgpack`. An existing file is replaced.
    pack: Option<PathBuf>,
    #[command(flatten)]
    password: PackPassword,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let file = &arguments.file;
    let Some(compiled) = task_files::compiled(file)? else {
        return Err(usage!("{} is no task file: it has no `task_file = 1`", file.display()));
    };
    if let lacks @ [_, ..] = compiled.lacks().as_slice() {
        return Err(usage!(
            "{}: a pack that is published states its {}: add {} at the top of the file",
            file.display(),
            lacks.join(" and its "),
            lacks.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" and ")
        ));
    }
    let path = arguments.pack.clone().unwrap_or_else(|| file.with_extension("kgpack"));
    let pack = seal_file(compiled.pack.parts(), &arguments.password.get(), &path).map_err(as_exit)?;
    writeln!(io::stdout().lock(), "{}", pack.hash())?;
    Ok(ExitCode::Success)
}

//! `kgfleet pack seal`.

use std::io::{self, Write};
use std::path::PathBuf;

use packs::{Parts, seal_file};

use crate::kit::exit_code::ExitCode;
use crate::place::passwords::{PackPassword, as_exit};

/// Seal a folder into a pack file, with the plaintext manifest beside it. Prints the pack's hash.
///
/// Exit codes: 0 sealed; 2 the folder holds no valid pack; 3 a file cannot be read or written.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folder with `pack.toml` and `tasks/`, as `kgfleet pack unseal` writes it.
    dir: PathBuf,
    /// The pack file to write, such as `own.kgpack`. An existing file is replaced.
    file: PathBuf,
    #[command(flatten)]
    password: PackPassword,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let parts = Parts::read_dir(&arguments.dir).map_err(as_exit)?;
    let pack = seal_file(&parts, &arguments.password.get(), &arguments.file).map_err(as_exit)?;
    writeln!(io::stdout().lock(), "{}", pack.hash())?;
    Ok(ExitCode::Success)
}

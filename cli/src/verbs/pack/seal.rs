//! `kgfleet pack seal` and `kgfleet pack unseal`.

use std::io::{self, Write};
use std::path::PathBuf;

use packs::{Parts, seal_file};

use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::note;
use crate::place::packs::{PackPassword, as_exit};

/// Seal a folder into a pack file, with the plaintext manifest beside it. Prints the pack's hash.
///
/// Exit codes: 0 sealed; 2 the folder holds no valid pack; 3 a file cannot be read or written.
#[derive(Debug, clap::Args)]
pub(super) struct SealArguments {
    /// Folder with `pack.toml` and `tasks/`, as `kgfleet pack unseal` writes it.
    dir: PathBuf,
    /// The pack file to write, such as `own.kgpack`. An existing file is replaced.
    file: PathBuf,
    #[command(flatten)]
    password: PackPassword,
}

pub(super) fn seal(arguments: &SealArguments) -> anyhow::Result<ExitCode> {
    let parts = Parts::read_dir(&arguments.dir).map_err(as_exit)?;
    let pack = seal_file(&parts, &arguments.password.get(), &arguments.file).map_err(as_exit)?;
    writeln!(io::stdout().lock(), "{}", pack.hash())?;
    Ok(ExitCode::Success)
}

/// Write the files of a pack into a folder, in plaintext, for editing.
///
/// Choose a folder outside any repository: exercises published in plaintext end up in training sets. Existing files
/// are never overwritten.
#[derive(Debug, clap::Args)]
pub(super) struct UnsealArguments {
    /// A sealed pack, or `core` for the built-in one.
    pack: PathBuf,
    /// The folder to write; created if needed.
    dir: PathBuf,
    #[command(flatten)]
    password: PackPassword,
    /// Allow unsealing a protected pack, whose authors ask to keep it encrypted.
    #[arg(long)]
    plaintext: bool,
}

pub(super) fn unseal(arguments: &UnsealArguments) -> anyhow::Result<ExitCode> {
    let pack = arguments.password.open(&arguments.pack)?;
    if pack.header().protected && !arguments.plaintext {
        return Err(usage!(
            "{}: the pack is protected; use --plaintext to write it in plaintext anyway",
            pack.name()
        ));
    }
    pack.parts().write_dir(&arguments.dir).map_err(as_exit)?;
    note!("{} entries written to {}", pack.manifest().entries.len(), arguments.dir.display());
    Ok(ExitCode::Success)
}

//! `kgfleet pack unseal`.

use std::path::PathBuf;

use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::note;
use crate::place::passwords::{PackPassword, as_exit};

/// Write the files of a pack into a folder, in plaintext, for editing.
///
/// Choose a folder outside any repository: exercises published in plaintext end up in training sets. Existing files
/// are never overwritten.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
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

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
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

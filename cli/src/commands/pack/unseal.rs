//! `kgfleet pack unseal`.

use std::path::PathBuf;

use anyhow::anyhow;

use super::{OpeningIdentity, as_exit};
use crate::exit_code::{Exit, ExitCode};

/// Write the files of a pack into a folder, in the clear, for editing.
///
/// Choose a folder outside of any repository: exercises that stand on the web in the clear end up in training sets.
/// Files that exist are never overwritten.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// A sealed pack, or `core` for the built-in one.
    pack: PathBuf,
    /// The folder to write; made where needed.
    dir: PathBuf,
    #[command(flatten)]
    identity: OpeningIdentity,
    /// Write a protected pack in the clear as well, whose authors ask that it be kept encrypted.
    #[arg(long)]
    plaintext: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let pack = arguments.identity.open(&arguments.pack)?;
    if pack.header().protected && !arguments.plaintext {
        return Err(Exit::usage(anyhow!(
            "{}: the pack is protected; pass --plaintext to write it in the clear all the same",
            pack.name()
        )));
    }
    pack.parts().write_dir(&arguments.dir).map_err(as_exit)?;
    eprintln!("{} entries written to {}", pack.manifest().entries.len(), arguments.dir.display());
    Ok(ExitCode::Success)
}

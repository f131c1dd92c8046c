//! `kgfleet pack`: inspect, verify, seal, unseal and import packs. One file per command.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use packs::{Identity, Pack, PackError, Parts};

use crate::exit_code::{Exit, ExitCode};
use crate::run::material::{CORE, advised, open_pack};

mod import;
mod list;
mod seal;
mod show;
mod unseal;
mod verify;

/// Work with task packs: the exercises of the benchmark, sealed against crawlers.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Verify(verify::Arguments),
    List(list::Arguments),
    Show(show::Arguments),
    Seal(seal::Arguments),
    Unseal(unseal::Arguments),
    Import(import::Arguments),
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.verb {
        Verb::Verify(arguments) => verify::run(&arguments),
        Verb::List(arguments) => list::run(&arguments),
        Verb::Show(arguments) => show::run(&arguments),
        Verb::Seal(arguments) => seal::run(&arguments),
        Verb::Unseal(arguments) => unseal::run(&arguments),
        Verb::Import(arguments) => import::run(arguments),
    }
}

/// The identity that opens a pack.
#[derive(Debug, clap::Args)]
struct OpeningIdentity {
    /// Identity file (as age-keygen writes it) that opens the pack. Default: the published one.
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
}

/// The identity to seal a pack for.
#[derive(Debug, clap::Args)]
pub(super) struct SealingIdentity {
    /// Identity file (as age-keygen writes it) to seal the pack for. Default: the published one, which keeps out
    /// crawlers only.
    #[arg(long, value_name = "FILE")]
    recipient_identity: Option<PathBuf>,
}

impl OpeningIdentity {
    /// Opens `core`, a sealed file, or the folder of an unsealed pack.
    fn open(&self, pack: &Path) -> anyhow::Result<Arc<Pack>> {
        let bundled = |name: &&str| *name == CORE || packs::bundled(name).is_some();
        if let Some(name) = pack.to_str().filter(bundled) {
            return open_pack(name);
        }
        let opened = if pack.is_dir() {
            Parts::read_dir(pack).and_then(Pack::from_parts)
        } else {
            Pack::open(pack, &identity(self.identity.as_deref())?)
        };
        Ok(Arc::new(opened.map_err(as_exit)?))
    }
}

impl SealingIdentity {
    pub(super) fn get(&self) -> anyhow::Result<Identity> {
        identity(self.recipient_identity.as_deref())
    }
}

fn identity(file: Option<&Path>) -> anyhow::Result<Identity> {
    match file {
        Some(file) => Identity::from_file(file).map_err(as_exit),
        None => Ok(Identity::published()?),
    }
}

/// An unreadable file is an infrastructure failure; a file that is not a usable pack is a usage error.
pub(super) fn as_exit(error: PackError) -> anyhow::Error {
    match error {
        PackError::Io { .. } => advised(error),
        error => Exit::usage(advised(error)),
    }
}

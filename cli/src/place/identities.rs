//! The options for the identities that seal and open packs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use packs::{Identity, Pack, PackError, Parts};

use crate::kit::exit_code::Exit;
use crate::place::packs::{CORE, advised, open_pack};

/// The identity that opens a pack.
#[derive(Debug, clap::Args)]
pub struct OpeningIdentity {
    /// Identity file (as age-keygen writes it) that opens the pack. Default: the published one.
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
}

/// The identity to seal a pack for.
#[derive(Debug, clap::Args)]
pub struct SealingIdentity {
    /// Identity file (as age-keygen writes it) to seal the pack for. Default: the published one, which keeps out
    /// crawlers only.
    #[arg(long, value_name = "FILE")]
    recipient_identity: Option<PathBuf>,
}

impl OpeningIdentity {
    /// Opens `core`, a sealed file, or the folder of an unsealed pack.
    pub fn open(&self, pack: &Path) -> anyhow::Result<Arc<Pack>> {
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
    pub fn get(&self) -> anyhow::Result<Identity> {
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
pub fn as_exit(error: PackError) -> anyhow::Error {
    match error {
        PackError::Io { .. } => advised(error),
        error => Exit::usage(advised(error)),
    }
}

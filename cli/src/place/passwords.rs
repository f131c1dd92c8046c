//! The option for the password that seals and opens packs.

use std::path::Path;
use std::sync::Arc;

use packs::{Pack, PackError, Parts, published_password};
use results::password::Password;

use crate::kit::exit_code::Exit;
use crate::place::packs::{CORE, advised, open_pack};

#[derive(Debug, clap::Args)]
pub struct PackPassword {
    /// Password that seals and opens the pack. Default: the published one, which keeps out crawlers only.
    #[arg(long, value_name = "P", env = "KGFLEET_PACK_PASSWORD", hide_env_values = true)]
    pack_password: Option<String>,
}

impl PackPassword {
    /// Opens `core`, a sealed file, or the folder of an unsealed pack.
    pub fn open(&self, pack: &Path) -> anyhow::Result<Arc<Pack>> {
        let bundled = |name: &&str| *name == CORE || packs::bundled(name).is_some();
        if let Some(name) = pack.to_str().filter(bundled) {
            return open_pack(name);
        }
        let opened = if pack.is_dir() {
            Parts::read_dir(pack).and_then(Pack::from_parts)
        } else {
            Pack::open(pack, &self.get())
        };
        Ok(Arc::new(opened.map_err(as_exit)?))
    }

    pub fn get(&self) -> Password {
        self.pack_password.as_deref().map_or_else(published_password, Password::new)
    }
}

/// An unreadable file is an infrastructure failure; a file that is not a usable pack is a usage error.
pub fn as_exit(error: PackError) -> anyhow::Error {
    match error {
        PackError::Io { .. } => advised(error),
        error => Exit::usage(advised(error)),
    }
}

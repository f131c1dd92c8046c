//! The table of prices: the one of this program, or the user's own.

use std::path::PathBuf;

use report::costs::Prices;

use crate::files::tables;
use crate::kit::exit_code::Exit;

/// Which prices count.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PriceTable {
    /// Table of prices of tokens and GPU hours. Default: the one of this program, `deploy/costs/prices.toml` in its sources.
    #[arg(long = "prices", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl PriceTable {
    /// Reads it.
    ///
    /// # Errors
    /// The file cannot be read, or is no table of prices.
    pub fn read(&self) -> anyhow::Result<Prices> {
        let Some(path) = &self.file else { return Ok(Prices::shipped()) };
        tables::parsed(path, Prices::parse).map_err(Exit::usage)
    }
}

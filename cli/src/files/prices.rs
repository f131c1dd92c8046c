//! The table of prices: the one of this program, or the user's own.

use std::path::PathBuf;

use anyhow::Context;
use report::costs::Prices;

use crate::kit::exit_code::{Exit, usage};

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
        let name = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"));
        Prices::parse(&text.map_err(Exit::usage)?).map_err(|error| usage!("{name}: {error}"))
    }
}

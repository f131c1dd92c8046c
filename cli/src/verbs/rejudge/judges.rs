//! Judges the answers of a judged benchmark again, with other judges.

use std::path::PathBuf;

use crate::configure::choose::Selection;
use crate::engine::session::WantedBenchmark;
use crate::engine::start::{self, Common};
use crate::engine::submit;
use crate::kit::exit_code::ExitCode;
use crate::kit::runtime::block_on;
use crate::place::remote::Remote;
use crate::place::{Place, names, trust};

/// What judging again with other judges takes.
pub(super) struct JudgedAgain {
    pub name: String,
    /// The configuration with other judges.
    pub config: PathBuf,
    pub waits: bool,
    pub common: Common,
}

pub(super) fn run(wanted: JudgedAgain, remote: Option<Remote>) -> anyhow::Result<ExitCode> {
    let JudgedAgain { name, config, waits, common } = wanted;
    let configuration = Selection::default().configuration(Some(&config))?;
    let name = match &remote {
        None => {
            let found = names::of_folder(&name, &common.data_dir)?;
            block_on(trust::expect_own_judged(&found, &common.data_dir, common.trust_endpoints))?;
            found
        }
        Some(remote) => Place::Fleet(remote.clone()).about(&name, async |_, name| Ok(name.clone()))?,
    };
    let configuration = start::again(&name, configuration)?;
    if let Some(remote) = remote {
        return submit::configuration(&remote, &configuration, common.json);
    }
    start::hold(WantedBenchmark::Configured(configuration), common, None, waits)
}

//! `kgfleet judge`.

use std::path::PathBuf;

use crate::configure::choose::Selection;
use crate::engine::session::WantedBenchmark;
use crate::engine::start::{self, Common};
use crate::engine::submit;
use crate::kit::exit_code::ExitCode;
use crate::kit::runtime::block_on;
use crate::place::remote::MaybeRemote;
use crate::place::{names, trust};

/// Judge the answers of a pipeline again, with other judges.
///
/// The configuration is that of the pipeline, with other judges in it. The answers are taken over, and so is every verdict
/// that the same judge gave to the same question; only the rest is asked. The result is a pipeline of its own.
///
/// Exit codes as for `kgfleet run`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP)]
    pipeline: String,
    /// The configuration with other judges.
    #[arg(long = "with", value_name = "CONFIG")]
    config: PathBuf,
    /// End where a judge cannot be reached, instead of waiting for it.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    common: Common,
}

/// `kgfleet judge`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let configuration = Selection::default().configuration(Some(&arguments.config))?;
    let remote = start::named(&arguments.remote, &arguments.common)?;
    let name = match &remote {
        None => {
            let Common { data_dir, trust_endpoints, .. } = &arguments.common;
            let name = names::of_folder(&arguments.pipeline, data_dir)?;
            block_on(trust::expect_own_judged(&name, data_dir, *trust_endpoints))?;
            name
        }
        Some(remote) => remote.about(&arguments.pipeline, async |_, name| Ok(name.clone()))?,
    };
    let configuration = start::again(&name, configuration)?;
    if let Some(remote) = remote {
        return submit::configuration(&remote, &configuration, arguments.common.json);
    }
    start::hold(WantedBenchmark::Configured(configuration), arguments.common, None, !arguments.no_wait)
}

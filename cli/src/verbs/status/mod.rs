//! `kgfleet status`. `fleet` asks a coordinator, `here` reads a folder of this machine, `shown` prints one benchmark of either.

mod fleet;
mod here;
mod shown;

use crate::files::prices::PriceTable;
use crate::kit::exit_code::{ExitCode, usage};
use crate::place::data_dir::DataDir;
use crate::place::remote::MaybeRemote;
use crate::place::{completing, fetch};

/// Show the runs of this machine or of a fleet, or one of them.
///
/// Without a name: all runs and pipelines; those of this machine by their age, the oldest first. With a name: models, scores and
/// failures, and what was spent where prices or GPU-hours are known. Of an unfinished run of this machine also how many bytes its records take, how many more are to come, and how many
/// are free.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name of a run or pipeline, its beginning if no other one begins like it, or `latest` for the newest one. Default: all, one
    /// line each.
    #[arg(add = completing::runs())]
    run: Option<String>,
    /// List the runs of the pipelines' stages too; for runs of this machine.
    #[arg(long, conflicts_with = "run")]
    stages: bool,
    /// Print JSON: one object, or one line for each run.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    prices: PriceTable,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet status`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { run, stages, json, prices, remote, data } = arguments;
    let prices = prices.read()?;
    match (remote.named()?, run) {
        (Some(_), _) if stages => Err(usage!(
            "--stages is for runs of this machine; in a fleet, `kgfleet status NAME` lists the runs of a pipeline"
        )),
        (_, Some(run)) if fetch::is_archive(&run) => {
            let unpacked = fetch::unpacked(&run)?;
            here::show(unpacked.name.as_str(), unpacked.data_dir(), &prices, json)
        }
        (Some(remote), run) => fleet::show(&remote, run.as_deref(), &prices, json),
        (None, Some(run)) => here::show(&run, data.path(), &prices, json),
        (None, None) => here::list(data.path(), stages, json),
    }
}

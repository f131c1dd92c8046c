//! `kgfleet status`. `fleet` asks a coordinator, `here` reads a folder of this machine, `shown` prints one benchmark of either.

mod fleet;
mod here;
mod shown;

use crate::engine::notify::Notify;
use crate::engine::watch;
use crate::files::prices::PriceTable;
use crate::kit::exit_code::{ExitCode, usage};
use crate::place::data_dir::DataDir;
use crate::place::remote::MaybeRemote;
use crate::place::{completing, fetch, names};

/// Show the runs of this machine or of a fleet, or one of them.
///
/// Without a name: all runs and pipelines; those of this machine by their age, the oldest first. With a name: models, scores and
/// failures, and what was spent where prices or GPU-hours are known. Of an unfinished run of this machine also how many bytes its
/// records take, how many more are to come, and how many are free.
///
/// With --follow: a line every ten seconds, and at once when something begins to keep the run from going on; at the end, its
/// scores. The run continues without a follower. A coordinator that does not answer is asked again. Exit codes with --follow: 0
/// finished; 1 finished with failed dialogues; 130 cancelled, or interrupted.
#[derive(Debug, clap::Args)]
#[command(mut_args(with_follow))]
pub struct Arguments {
    /// Name of a run or pipeline, its beginning if no other one begins like it, or `latest` for the newest one. Default: all, one
    /// line each; with --follow, the newest one.
    #[arg(add = completing::runs())]
    run: Option<String>,
    /// Follow it until it ends.
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    notify: Notify,
    /// List the runs of the pipelines' stages too; for runs of this machine.
    #[arg(long, conflicts_with_all = ["run", "follow"])]
    stages: bool,
    /// Print JSON: one object, or one line for each run or, with --follow, for each change.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    prices: PriceTable,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

/// Lets nobody be told of a run that is not followed.
fn with_follow(option: clap::Arg) -> clap::Arg {
    match option.get_id().as_str() {
        "on_end" | "webhook" => option.requires("follow"),
        _ => option,
    }
}

/// `kgfleet status`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { run, follow, notify, stages, json, prices, remote, data } = arguments;
    let prices = prices.read()?;
    let remote = remote.named()?;
    if follow {
        let run = run.as_deref().unwrap_or(names::LATEST);
        return match remote {
            Some(remote) => fleet::follow(&remote, run, notify, json),
            None if notify.is_empty() => {
                watch::follow_here(&names::of_folder(run, data.path())?, data.path(), json)
            }
            None => Err(usage!(
                "--webhook and --on-end of `status` are for runs of a fleet; of one of this machine, those of `kgfleet run` tell"
            )),
        };
    }
    match (remote, run) {
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

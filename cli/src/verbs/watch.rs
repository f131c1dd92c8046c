//! `kgfleet watch`.

use domain::control::{BenchmarkView, Control};

use crate::engine::notify::Notify;
use crate::engine::watch;
use crate::kit::exit_code::{ExitCode, explained, usage};
use crate::kit::runtime::block_on;
use crate::place::data_dir::DataDir;
use crate::place::remote::MaybeRemote;
use crate::place::{completing, names};

/// Follow a run of this machine or of a fleet until it ends.
///
/// Prints a line every ten seconds, and at once when something begins to keep the run from going on; at the end, its scores. The
/// run continues without a watcher. A coordinator that does not answer is asked again.
///
/// Exit codes: 0 finished; 1 finished with failed dialogues; 130 cancelled, or interrupted.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name of the run, or its beginning if no other run begins like it. Default: the newest one.
    #[arg(add = completing::runs())]
    run: Option<String>,
    #[command(flatten)]
    notify: Notify,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet watch`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let remote = match arguments.remote.named()? {
        Some(remote) => remote,
        None => {
            let data_dir = arguments.data.path();
            let run = names::of_folder(arguments.run.as_deref().unwrap_or(names::LATEST), data_dir)?;
            if !arguments.notify.is_empty() {
                return Err(usage!(
                    "--webhook and --on-end of `watch` are for runs of a fleet; of one of this machine, those of `kgfleet run` tell"
                ));
            }
            return watch::follow_here(&run, data_dir, arguments.json);
        }
    };
    block_on(async {
        let client = remote.client()?;
        let run = match arguments.run {
            Some(run) => names::of_coordinator(&run, &client).await?,
            None => match newest(client.list().await.map_err(explained)?) {
                Some(newest) => newest.run,
                None => {
                    eprintln!("the coordinator has no runs; `kgfleet submit CONFIG` starts one");
                    return Ok(ExitCode::Success);
                }
            },
        };
        watch::follow(&client, &run, arguments.json, arguments.notify).await
    })
}

/// The benchmark that was submitted last. Lists have those without judges first.
fn newest(listed: Vec<BenchmarkView>) -> Option<BenchmarkView> {
    listed.into_iter().max_by_key(|view| view.created_at)
}

//! `kgfleet watch`.

use domain::control::{BenchmarkView, Control};

use crate::engine::notify::Notify;
use crate::engine::watch;
use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::runtime::block_on;
use crate::place::remote::Remote;
use crate::place::{completing, names};

/// Follow a run until it ends.
///
/// On a terminal: full screen, with lists of models, workers and failures. Tab, Left, Right, 1, 2 and 3 change the
/// list; Up, Down, PageUp, PageDown, Home and End (also k, j, g, G) move the selection, which is shown in full; s changes
/// the order of models, b goes to the next blocked one; q or Escape leaves. The run continues without a watcher. Elsewhere: a line every ten seconds.
///
/// If the coordinator does not answer, the command keeps trying, and the screen shows for how long.
///
/// Exit codes: 0 finished, or left; 1 finished with failed dialogues; 130 cancelled, or interrupted.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name of the run, or its beginning if no other run begins like it. Default: the newest one.
    #[arg(add = completing::runs_of_fleet())]
    run: Option<String>,
    #[command(flatten)]
    notify: Notify,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// `kgfleet watch`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    block_on(async {
        let client = arguments.remote.client()?;
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

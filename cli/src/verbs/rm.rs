//! `kgfleet rm`.

use crate::engine::batches::LeftBatches;
use crate::kit::exit_code::ExitCode;
use crate::kit::output::note;
use crate::kit::runtime::block_on;
use crate::place::data_dir::DataDir;
use crate::place::remote::MaybeRemote;
use crate::place::{completing, local, names, steer};

/// Remove a run with all its records: a run of this machine or of a fleet.
///
/// A run of this machine is not removed while a process or a coordinator writes it. A run of a fleet must be over, also
/// while no coordinator is there; workers drop records of it that they still hold.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP, add = completing::runs())]
    run: String,
    /// Remove a run of a fleet that is not over, or whose state cannot be read. Told by a coordinator, it is cancelled first.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet rm`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(remote) = arguments.remote.named()? {
        return steer::remove(&remote, &arguments.run, arguments.force);
    }
    let name = names::of_folder(&arguments.run, arguments.data.path())?;
    // The manifests that say how they are asked are about to go.
    let left = block_on(async { Ok(LeftBatches::of(&name, arguments.data.path()).await) })?;
    if let Some(name) = local::remove(&name, arguments.data.path(), arguments.force)? {
        abandon(left)?;
        note!("removed pipeline {name}");
        return Ok(ExitCode::Success);
    }
    let (dir, manifest) = arguments.data.open_altered(name.as_str())?;
    // No coordinator takes it up from here on.
    let lock = dir.lock()?;
    if !arguments.force {
        local::expect_removable(&manifest.run, arguments.data.path())?;
    }
    abandon(left)?;
    dir.remove(&lock)?;
    note!("removed run {}", manifest.run);
    Ok(ExitCode::Success)
}

/// Ends what a run has at providers. One that cannot be ended is told, and keeps no run.
fn abandon(left: LeftBatches) -> anyhow::Result<()> {
    block_on(async {
        left.abandon().await;
        Ok(())
    })
}

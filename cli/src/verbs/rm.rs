//! `kgfleet rm`.

use crate::kit::exit_code::ExitCode;
use crate::kit::output::note;
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
    if let Some(name) = local::remove(&name, arguments.data.path(), arguments.force)? {
        note!("removed pipeline {name}");
        return Ok(ExitCode::Success);
    }
    let (dir, manifest) = arguments.data.open_altered(&arguments.run)?;
    // No coordinator takes it up from here on.
    let lock = dir.lock()?;
    if !arguments.force {
        local::expect_removable(&manifest.run, arguments.data.path())?;
    }
    dir.remove(&lock)?;
    note!("removed run {}", manifest.run);
    Ok(ExitCode::Success)
}

//! `kgfleet rm`: `old` finds the runs that ended long ago, `packs` removes what no run names any more.

mod old;
mod packs;

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{explain, note, say};
use crate::place::data_dir::DataDir;
use crate::place::remote::MaybeRemote;
use crate::place::{completing, local, names, steer};

/// Remove a run with all its records: a run of this machine or of a fleet.
///
/// A run of this machine is not removed while a process or a coordinator writes it. A run of a fleet must be over, also
/// while no coordinator is there; workers drop records of it that they still hold. On this machine, packs that no run names any
/// more go too, if they are an hour old. Exit codes: 0 removed; 1 an old run could not be removed; 2, 3.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP, add = completing::runs(), required_unless_present = "older_than", conflicts_with = "older_than")]
    run: Option<String>,
    /// Remove a run of a fleet that is not over, or whose state cannot be read. Told by a coordinator, it is cancelled first.
    #[arg(long, conflicts_with = "older_than")]
    force: bool,
    /// Instead of one run: all runs and pipelines of this machine that are over and ended at least so many days ago, such as 30d.
    #[arg(long, value_name = "DAYS", value_parser = days)]
    older_than: Option<Duration>,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

/// Parses days: `30d`.
fn days(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let seconds = days.map(|days| u64::from(days) * old::DAY_SECONDS);
    seconds.map(Duration::from_secs).ok_or_else(|| "expected days, such as 30d".to_owned())
}

/// `kgfleet rm`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { run, force, older_than, remote, data } = arguments;
    if let Some(remote) = remote.named()? {
        return match run {
            Some(run) => steer::remove(&remote, &run, force),
            None => Err(usage!("--older-than is for runs of this machine")),
        };
    }
    let code = match (&run, older_than) {
        (Some(run), _) => remove_one(run, &data, force)?,
        (None, least) => remove_old(data.path(), least.unwrap_or_default())?,
    };
    packs::remove_needless(data.path())?;
    Ok(code)
}

fn remove_one(run: &str, data: &DataDir, force: bool) -> anyhow::Result<ExitCode> {
    let name = names::of_folder(run, data.path())?;
    if let Some(name) = local::remove(&name, data.path(), force)? {
        note!("removed pipeline {name}");
        return Ok(ExitCode::Success);
    }
    let (dir, manifest) = data.open_altered(name.as_str())?;
    // No coordinator takes it up from here on.
    let lock = dir.lock()?;
    if !force {
        local::expect_removable(&manifest.run, data.path())?;
    }
    dir.remove(&lock)?;
    note!("removed run {}", manifest.run);
    Ok(ExitCode::Success)
}

fn remove_old(data: &Path, least: Duration) -> anyhow::Result<ExitCode> {
    let mut kept = Vec::new();
    let all = old::read(data, &mut kept)?;
    let unread = packs::needed(data)?.unread_judged;
    let going = old::going(&all, unread.first().map(String::as_str), SystemTime::now(), least, &mut kept);
    kept.iter().for_each(|why| say(why));
    let mut code = ExitCode::Success;
    for benchmark in going {
        match old::remove(data, benchmark) {
            Ok(()) => note!("removed {}", benchmark.name),
            Err(error) => {
                say(&format!("{} stays: {}", benchmark.name, explain(&error)));
                code = ExitCode::Unsatisfied;
            }
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_days() {
        assert_eq!(days("30d"), Ok(Duration::from_secs(30 * 24 * 60 * 60)));
        assert!(days("30").is_err() && days("d").is_err() && days("-1d").is_err());
    }
}

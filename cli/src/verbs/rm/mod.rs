//! `kgfleet rm`: `old` finds the runs that ended long ago, `packs` removes what no run names any more.

mod old;
mod packs;

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::kit::exit_code::{ExitCode, explained, usage};
use crate::kit::output::{explain, note, say};
use crate::place::{PlaceOptions, completing, names};

/// Remove a run with all its records: a run of this machine or of a fleet.
///
/// A run of this machine is not removed while a process or a coordinator writes it. A run of a fleet must be over, also
/// while no coordinator is there; workers drop records of it that they still hold. On this machine, packs that no run names any
/// more go too, if they are an hour old. Exit codes: 0 removed; 1 an old run could not be removed; 2, 3.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP, add = completing::runs(), required_unless_present = "older_than", conflicts_with = "older_than")]
    run: Option<String>,
    /// Remove a run of a fleet that is not over, which is cancelled first, or one that cannot be read.
    #[arg(long, conflicts_with = "older_than")]
    force: bool,
    /// Instead of one run: all runs and pipelines of this machine that are over and ended at least so many days ago, such as 30d.
    #[arg(long, value_name = "DAYS", value_parser = days)]
    older_than: Option<Duration>,
    #[command(flatten)]
    place: PlaceOptions,
}

/// Parses days: `30d`.
fn days(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let seconds = days.map(|days| u64::from(days) * old::DAY_SECONDS);
    seconds.map(Duration::from_secs).ok_or_else(|| "expected days, such as 30d".to_owned())
}

/// `kgfleet rm`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { run, force, older_than, place } = arguments;
    let place = place.place()?;
    let code = match (&run, place.folder()) {
        (Some(run), _) => place.about(run, async |control, run| {
            control.remove(run, force).await.map_err(explained)?;
            note!("removed {run}");
            Ok(ExitCode::Success)
        })?,
        (None, Some(folder)) => remove_old(folder, older_than.unwrap_or_default())?,
        (None, None) => return Err(usage!("--older-than is for runs of this machine")),
    };
    place.folder().map_or(Ok(()), packs::remove_needless)?;
    Ok(code)
}

fn remove_old(data: &Path, least: Duration) -> anyhow::Result<ExitCode> {
    let mut kept = Vec::new();
    let all = old::read(data)?;
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

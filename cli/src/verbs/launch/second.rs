//! Whether a launch would begin a run beside one that is not over, so that everything would be asked, and paid, twice.

use std::path::Path;

use domain::control::{BenchmarkView, Control};

use super::apply::{InstalledRun, Release};
use crate::kit::exit_code::{explained, usage};
use crate::kit::output::printable;
use crate::kit::runtime::block_on;
use crate::kit::whole_file;
use crate::place::remote::Remote;

/// Runs that are named, at most.
const NAMED_MAX: usize = 5;

/// Refuses to begin a second run in a release. `extend` is the run that the configuration is added to, if it is to one.
///
/// # Errors
/// The release works on another run, or may do so; helm or the coordinator failed.
pub fn refuse(
    release: &Release,
    config: &Path,
    extend: Option<&str>,
    remote: Option<&Remote>,
) -> anyhow::Result<()> {
    if extend.is_some() {
        return Ok(());
    }
    let Some(there) = release.installed()? else { return Ok(()) };
    let text = whole_file::read_text(config)?;
    // The chart submits a configuration once, however often it is installed.
    if there == (InstalledRun { config: text, extend: None }) {
        return Ok(());
    }
    let name = release.name();
    let Some(remote) = remote else {
        if there.config.is_empty() {
            return Ok(());
        }
        return Err(usage!(
            "nothing was installed: {name} was launched with another configuration, and only its coordinator knows whether that run \
             is over: name it with --fleet URL. A second run beside it would ask everything twice"
        ));
    };
    let all = block_on(async { remote.client()?.list().await.map_err(explained) })?;
    let going: Vec<&BenchmarkView> = all.iter().filter(|view| !view.phase.is_over()).collect();
    let Some(last) = going.last() else { return Ok(()) };
    let told =
        going.iter().take(NAMED_MAX).map(|view| format!("{} ({})", printable(view.run.as_str()), view.phase));
    Err(usage!(
        "nothing was installed: {name} works on {}, and this configuration would begin another run beside it. To add what is new \
         to that run: kgfleet launch {} --apply --extend {run}. To end it first: kgfleet cancel {run}",
        told.collect::<Vec<_>>().join(", "),
        config.display(),
        run = printable(last.run.as_str())
    ))
}

//! `kgfleet rejudge`: by the `scorer`, or by other judges.

mod scorer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::configure::choose::{self, Selection};
use crate::engine::session::WantedBenchmark;
use crate::engine::start::{self, Common};
use crate::engine::submit;
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::runtime::block_on;
use crate::place::remote::MaybeRemote;
use crate::place::{Place, completing, names, trust};

/// Judge recorded answers again, and keep what comes of it beside the old: a run with the current scorer, a judged benchmark with
/// other judges.
///
/// Of a run of this machine, the new run has the records of the old one with current scores, and `rejudged_from` in its manifest;
/// failed dialogues stay failed. A run that some process writes is refused. Answers are judged in this process, without a
/// sandbox. With --pack, other checks judge the same answers: a pack, or a task file whose weights or checks were changed. It
/// must ask what the run asked, every prompt byte for byte; otherwise nothing is judged.
///
/// Of a judged benchmark, here or in a fleet, --with names a configuration that has other judges in it. The answers are taken
/// over, and so is every verdict that the same judge gave to the same question; only the rest is asked. The result is a judged
/// benchmark of its own. The options of `kgfleet run` are for this.
///
/// Exit codes: 0, 2, 3; 4 the run's log is damaged, and the rest was judged; with --with as for `kgfleet run`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP, add = completing::runs())]
    run: String,
    /// The pack or task file to judge by. Default: the pack of the run.
    #[arg(long, value_name = "PACK", conflicts_with = "config")]
    pack: Option<String>,
    /// The configuration with other judges.
    #[arg(long = "with", value_name = "CONFIG", add = choose::completed())]
    config: Option<PathBuf>,
    /// End where a judge cannot be reached, instead of waiting for it.
    #[arg(long, requires = "config")]
    no_wait: bool,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    common: Common,
}

/// `kgfleet rejudge`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { run, pack, config, no_wait, remote, common } = arguments;
    let place = common.place(&remote)?;
    if let Some(config) = config {
        return by_judges(&place, &run, &config, !no_wait, common);
    }
    if place.folder().is_none() {
        return Err(usage!(
            "runs of a fleet are judged again once they are here: `kgfleet archive {run}`, then unpack the file into the data folder; \
             a judged benchmark is, with --with CONFIG"
        ));
    }
    scorer::run(&place.open(&run)?, pack.as_deref(), &common.data.data_dir, common.json)
}

/// Judges the answers of a judged benchmark again by the judges of a configuration, here or in the fleet where they are.
fn by_judges(
    place: &Place,
    name: &str,
    config: &Path,
    waits: bool,
    common: Common,
) -> anyhow::Result<ExitCode> {
    let mut configuration = Selection::default().configuration(Some(config))?;
    let name = place.about(name, async |_, name| Ok(name.clone()))?;
    if let Place::Here(folder) = place {
        block_on(trust::expect_own_judged(&name, folder, common.options.trust_endpoints))?;
    }
    if configuration.pipeline.is_none() {
        return Err(usage!("the configuration is not a judged benchmark: `pipeline` is missing"));
    }
    configuration.reuse = Some(name.to_string());
    match place {
        Place::Fleet(remote) => {
            submit::tell(&submit::submit(remote, &configuration, None, Duration::ZERO)?, common.json)
        }
        Place::Here(_) => start::hold(WantedBenchmark::Configured(configuration), common, waits),
    }
}

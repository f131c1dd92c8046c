//! `kgfleet copy`: `push` to a folder or an object store, `pull` from there or from a fleet, `bundle` into one file, `unbundle` out
//! of it. `servers` is what a bundle says of the servers that made its records.

mod bundle;
mod pull;
mod push;
mod servers;
mod unbundle;

use std::path::Path;

use crate::kit::exit_code::{ExitCode, usage};
use crate::place::data_dir::DataDir;
use crate::place::remote::MaybeRemote;
use crate::place::{completing, names};

/// The ending of a bundle.
const BUNDLE: &str = "kgbundle";

/// Copy a run, or a judged benchmark with all its runs, to or from a folder, an object store, a fleet or a bundle, and check that
/// it arrived.
///
/// A place is a data folder, file:///FOLDER, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX (with credentials of the environment, as for
/// `kgfleet coordinator --sink`), a bundle FILE.kgbundle or, with --from, a coordinator https://HOST:PORT.
///
/// A copy that was interrupted is completed by the same command. What is there already of the same run is kept and compared; a
/// different run of the same name is never touched. From a coordinator come the records that count; protected texts come only
/// to operators.
///
/// A bundle is one file to keep and to cite: records, manifests, packs, a report and tables, each with its hash, and which
/// servers of pools made the records. Of protected exercises, records and packs are encrypted as they are stored, for the
/// identity that is published with kgfleet, and report and tables have no texts, unless --plaintext is given. Where keys are
/// is left out of the configuration. A bundle is taken only as a whole and if every hash is right; `kgfleet resume` then
/// asks nobody for its run before --trust-endpoints is given.
///
/// Exit codes: 0 copied; 2 the run or the place cannot be used; 3 the bundle is damaged or over a limit, a different run of this
/// name is there, or the place failed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP, required_unless_present = "from", add = completing::runs())]
    run: Option<String>,
    /// Copy the run there.
    #[arg(long, value_name = "PLACE", required_unless_present = "from", conflicts_with = "from")]
    to: Option<String>,
    /// Copy it from there into --data-dir. Of a bundle no name is needed.
    #[arg(long, value_name = "PLACE")]
    from: Option<String>,
    /// Write texts of protected exercises into the report and the table of a bundle.
    #[arg(long)]
    plaintext: bool,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet copy`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { run, to, from, plaintext, remote, data } = arguments;
    let is_bundle = |place: &str| Path::new(place).extension().is_some_and(|ending| ending == BUNDLE);
    match (run, to, from) {
        (None, None, Some(from)) if is_bundle(&from) => unbundle::run(Path::new(&from), data.path()),
        (Some(_), None, Some(from)) if is_bundle(&from) => {
            Err(usage!("a bundle holds one benchmark: leave out its name, `kgfleet copy --from {from}`"))
        }
        (Some(run), None, Some(from)) => pull::run(&run, &from, &remote, data.path()),
        (None, None, Some(from)) => Err(usage!("name the run that is copied from {from}")),
        (Some(run), Some(to), None) if is_bundle(&to) => {
            bundle::run(&run, Path::new(&to), plaintext, &remote, &data)
        }
        (Some(_), Some(_), None) if remote.named()?.is_some() => Err(usage!(
            "a run of a fleet is copied here, with --from URL, or into a bundle, with --to FILE.kgbundle; --context here copies \
             one of this machine"
        )),
        (Some(run), Some(to), None) => push::run(&run, &to, &data),
        _ => Err(usage!("name a run and --to PLACE, or --from PLACE")),
    }
}

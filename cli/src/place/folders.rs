//! Runs in a data folder: their manifests, plans, packs and records.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use coordinator::configuration::Configuration;
use coordinator::plan::{Plan, outlines};
use coordinator::planned::NotAsPlanned;
use domain::RunId;
use packs::Pack;
use results::log::{Damage, WinnerIndex};
use results::manifest::ManifestError;
use results::run_dir::RunDirError;
use results::{RunDir, RunManifest};
use worker::material::PackFolder;

use crate::kit::exit_code::{Exit, usage};
use crate::place::{disclosure, packs as material};

/// The folder of audit logs in a folder of runs.
pub const AUDIT: &str = "audit";

/// Maximum number of dialogues for which memory is reserved before their records are read.
const RESERVED_MAX: usize = 5_000_000;

/// Plans a configuration.
pub fn plan(configuration: &Configuration) -> anyhow::Result<(Arc<Pack>, Plan)> {
    let pack = material::open_pack(&configuration.pack)?;
    let plan = Plan::new(configuration, &outlines(&pack)).map_err(Exit::usage)?;
    Ok((pack, plan))
}

/// The data folder that contains a run.
pub fn data_of(dir: &RunDir) -> &Path {
    dir.path().parent().and_then(Path::parent).unwrap_or(dir.path())
}

/// The packs that are stored beside the runs of a folder.
pub fn packs_beside(dir: &RunDir) -> PackFolder {
    PackFolder::new(data_of(dir).join("packs"))
}

/// The pack and the plan of a run. A pack stored beside the runs is preferred, because packs of judging runs exist only
/// there.
///
/// # Errors
/// The pack is missing, or its name now belongs to another pack; [`NotAsPlanned`] if the manifest was altered.
pub fn plan_kept(dir: &RunDir, manifest: &RunManifest) -> anyhow::Result<(Arc<Pack>, Plan)> {
    let configuration = configuration(manifest)?;
    let packs = packs_beside(dir);
    let used = manifest.packs.first();
    let (pack, plan) = match used.and_then(|used| packs.find(&used.hash)) {
        Some((_, pack)) => {
            let plan = Plan::new(&configuration, &outlines(&pack)).map_err(Exit::usage)?;
            (pack, plan)
        }
        None => {
            plan(&configuration).with_context(|| format!("the pack of run {} is not there", manifest.run))?
        }
    };
    NotAsPlanned::check(manifest, &plan, pack.hash().as_str())?;
    if let Some(used) = used.filter(|used| used.hash != pack.hash().as_str()) {
        bail!(
            "run {} was planned from pack {} ({}), which is not there; `{}` is {} today",
            manifest.run,
            used.hash.get(..12).unwrap_or_default(),
            used.name,
            configuration.pack,
            pack.hash().short()
        );
    }
    Ok((pack, plan))
}

/// Reads the configuration of a run.
///
/// # Errors
/// This version cannot read it.
pub fn configuration(manifest: &RunManifest) -> anyhow::Result<Configuration> {
    serde_json::from_value(manifest.configuration.clone())
        .with_context(|| format!("run {}: its configuration", manifest.run))
}

/// As [`plan_kept`]; `None` if the plan cannot be made again.
///
/// # Errors
/// The manifest was altered.
pub fn plan_unless_altered(
    dir: &RunDir,
    manifest: &RunManifest,
) -> Result<anyhow::Result<(Arc<Pack>, Plan)>, NotAsPlanned> {
    match plan_kept(dir, manifest) {
        Err(error) => match error.downcast::<NotAsPlanned>() {
            Ok(altered) => Err(altered),
            Err(error) => Ok(Err(error)),
        },
        planned => Ok(planned),
    }
}

/// Opens a run of this machine by its name.
///
/// # Errors
/// There is none, or its manifest cannot be read or was altered.
pub fn open(run: &RunId, data_dir: &Path) -> anyhow::Result<(RunDir, RunManifest)> {
    let (dir, manifest) = explained_open(RunDir::open(data_dir, run), run, data_dir)?;
    // What cannot be planned today is read all the same.
    let _ =
        plan_unless_altered(&dir, &manifest).with_context(|| dir.manifest_path().display().to_string())?;
    Ok((dir, manifest))
}

/// As [`open`], for a run whose manifest may have been altered: to report that, or to remove the run.
///
/// # Errors
/// There is none, or its manifest cannot be read.
pub fn open_altered(run: &RunId, data_dir: &Path) -> anyhow::Result<(RunDir, RunManifest)> {
    explained_open(RunDir::open_altered(data_dir, run), run, data_dir)
}

/// The result of opening a run, with an error for people.
fn explained_open<T>(opened: Result<T, RunDirError>, run: &RunId, data_dir: &Path) -> anyhow::Result<T> {
    opened.map_err(|error| {
        let error = anyhow!(error);
        let missing = |cause: &io::Error| cause.kind() == io::ErrorKind::NotFound;
        if error.chain().filter_map(|cause| cause.downcast_ref()).any(missing) {
            return no_run(run, data_dir);
        }
        error
    })
}

/// The error for a name that no run of this machine has, or whose run cannot be read.
pub fn no_run(run: &RunId, data_dir: &Path) -> anyhow::Error {
    if let Err(RunDirError::Manifest(error)) = RunDir::open(data_dir, run)
        && !matches!(error, ManifestError::Io(_))
    {
        return anyhow!(error).context(format!("run {run} cannot be read"));
    }
    usage!(
        "there is no run {run} in {}; `kgfleet status --fleet here` lists the runs, --data-dir selects another folder",
        data_dir.display()
    )
}

/// The winners of a run's log.
pub fn recorded(dir: &RunDir, run: &RunManifest) -> anyhow::Result<WinnerIndex> {
    recorded_despite(dir, run, |damage| {
        eprintln!("the record log is damaged: {damage}; the dialogues in that place will be asked again");
    })
}

/// The winners of a run's log; `lost` is called for every damage that may have lost records.
pub fn recorded_despite(
    dir: &RunDir,
    run: &RunManifest,
    mut lost: impl FnMut(&Damage),
) -> anyhow::Result<WinnerIndex> {
    // The number in a manifest is not trusted: beyond this, memory grows as records are read.
    let keys = usize::try_from(run.planned_dialogues).unwrap_or(usize::MAX).min(RESERVED_MAX);
    let cipher = disclosure::cipher(run)?;
    let index = WinnerIndex::build(&dir.log(), cipher.as_ref(), keys, |damage| {
        if damage.is_loss() {
            lost(&damage);
        }
    })?;
    Ok(index)
}

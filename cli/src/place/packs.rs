//! Loads the pack and the tasks of a run.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use coordinator::plan::Plan;
use domain::Iteration;
use packs::{Pack, PackError, Parts, published_password};
use results::password::Password;
use tasks::{CaseData, Task, TaskData};
use worker::TaskList;
use worker::material::MaterialError;
pub use worker::material::{CORE, load};

use crate::kit::exit_code::Exit;
use crate::place::task_files;

/// Opens a pack by its name in configurations; a task file is compiled.
pub fn open_pack(name: &str) -> anyhow::Result<Arc<Pack>> {
    if let Some(compiled) = task_files::pack(name)? {
        return Ok(compiled);
    }
    worker::material::open_pack(name).map_err(|error| match error {
        MaterialError::Pack(error) => Exit::usage(advised(error)),
        error => Exit::usage(error),
    })
}

/// An error of a pack, with what the user can do about it.
fn advised(error: PackError) -> anyhow::Error {
    match error.advice() {
        Some(advice) => anyhow!("{error}; {advice}"),
        None => error.into(),
    }
}

/// The tasks of a plan, by their index in the plan.
pub fn build(pack: &Pack, plan: &Plan) -> anyhow::Result<TaskList> {
    let labels = plan.tasks.iter().map(|task| &pack.tasks()[task.index].label);
    Ok(worker::material::build_to_ask(pack, labels)?)
}

/// A case that somebody names.
pub struct NamedCase<'p> {
    pub of: &'p TaskData,
    pub case: &'p CaseData,
    pub task: Task,
    /// The first one that has the case.
    pub iteration: Iteration,
}

/// The case of this name, TASK/CASE, or CASE alone if it is unique.
pub fn case<'p>(pack: &'p Pack, wanted: &str) -> anyhow::Result<NamedCase<'p>> {
    let (of, case) = pack.show(wanted).map_err(as_exit)?;
    let graphs = pack.graphs().map_err(as_exit)?.build();
    let mut built = pack.build_selected(&graphs, |task| task.label == of.label).map_err(as_exit)?;
    let task = built.pop().context("the task of the case is not in the pack")?;
    let number = of.cases.iter().position(|known| known.uid == case.uid).unwrap_or_default();
    Ok(NamedCase { of, case, task, iteration: Iteration::try_from(number)? })
}

/// The password that seals and opens packs.
#[derive(Debug, clap::Args)]
pub struct PackPassword {
    /// Password that seals and opens the pack. Default: the published one, which keeps out crawlers only.
    #[arg(long, value_name = "P", env = "KGFLEET_PACK_PASSWORD", hide_env_values = true)]
    pack_password: Option<String>,
}

impl PackPassword {
    /// Opens `core`, a sealed file, or the folder of an unsealed pack.
    pub fn open(&self, pack: &Path) -> anyhow::Result<Arc<Pack>> {
        let bundled = |name: &&str| *name == CORE || packs::bundled(name).is_some();
        if let Some(name) = pack.to_str().filter(bundled) {
            return open_pack(name);
        }
        let opened = if pack.is_dir() {
            Parts::read_dir(pack).and_then(Pack::from_parts)
        } else {
            Pack::open(pack, &self.get())
        };
        Ok(Arc::new(opened.map_err(as_exit)?))
    }

    pub fn get(&self) -> Password {
        self.pack_password.as_deref().map_or_else(published_password, Password::new)
    }
}

/// An unreadable file is an infrastructure failure; a file that is not a usable pack is a usage error.
pub fn as_exit(error: PackError) -> anyhow::Error {
    match error {
        PackError::Io { .. } => advised(error),
        error => Exit::usage(advised(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(pack: &Path) -> String {
        format!("{:#}", open_pack(pack.to_str().unwrap()).unwrap_err())
    }

    #[test]
    fn what_is_no_pack_of_ours_is_refused_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        let missing = refusal(&folder.path().join("nosuch"));
        assert!(missing.contains("nosuch") && missing.contains("`core`"), "{missing}");
        let unsealed = refusal(folder.path());
        assert!(unsealed.contains("kgfleet pack seal"), "{unsealed}");
        let of_others = folder.path().join("theirs.kgpack");
        let core = open_pack(CORE).unwrap();
        std::fs::write(&of_others, packs::seal_quickly(core.parts(), &Password::new("theirs")).unwrap())
            .unwrap();
        let locked = refusal(&of_others);
        assert!(locked.contains("theirs.kgpack") && locked.contains("--pack-password"), "{locked}");
    }
}

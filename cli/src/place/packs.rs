//! Loads the pack and the tasks of a run.

use std::sync::Arc;

use anyhow::anyhow;
use coordinator::plan::Plan;
use packs::{Pack, PackError};
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
pub fn advised(error: PackError) -> anyhow::Error {
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

#[cfg(test)]
mod tests {
    use results::password::Password;

    use super::*;

    fn refusal(pack: &std::path::Path) -> String {
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

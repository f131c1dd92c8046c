//! Loads the pack and the tasks of a run.

use std::sync::Arc;

use coordinator::plan::Plan;
use packs::Pack;
use worker::TaskList;
pub use worker::material::{CORE, load};

use crate::exit_code::Exit;

/// Opens a pack by its name in configurations.
pub fn open_pack(name: &str) -> anyhow::Result<Arc<Pack>> {
    worker::material::open_pack(name).map_err(Exit::usage)
}

/// The tasks of a plan, by their index in the plan.
pub fn build(pack: &Pack, plan: &Plan) -> anyhow::Result<TaskList> {
    let labels = plan.tasks.iter().map(|task| &pack.tasks()[task.index].label);
    Ok(worker::material::build_to_ask(pack, labels)?)
}

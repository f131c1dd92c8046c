//! The tasks of a run as the command line needs them.

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

/// The tasks of a plan, ready to be asked, by their index in the plan.
pub fn build(pack: &Pack, plan: &Plan) -> anyhow::Result<TaskList> {
    let labels = plan.tasks.iter().map(|task| &pack.tasks()[task.index].label);
    Ok(worker::material::build_to_ask(pack, labels)?)
}

//! The tasks of a run: a pack opened, the planned tasks built, and what a plan needs to know of them.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use coordinator::configuration::Benchmark;
use coordinator::plan::{Plan, TaskOutline};
use packs::{Identity, Pack};
use serde::{Deserialize, Serialize};
use tasks::{GraphLibrary, Task, TaskClass, TaskData};
use worker::TaskList;

use crate::exit_code::Exit;

/// The name that means the built-in pack.
pub const CORE: &str = "core";

/// Which tasks a process needs: what a parent tells its evaluation processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaterialRequest {
    /// `core` or the path of a pack file.
    pub pack: String,
    /// Labels within the pack, in the order of the list wanted.
    pub tasks: Vec<String>,
}

/// Opens a pack by its name in configurations.
pub fn open_pack(name: &str) -> anyhow::Result<Arc<Pack>> {
    if name == CORE {
        return Ok(Pack::shared_builtin()?);
    }
    let identity = Identity::published().context("the built-in identity")?;
    Ok(Arc::new(Pack::open(Path::new(name), &identity).map_err(Exit::usage)?))
}

/// What a plan needs to know of the tasks of a pack.
pub fn outlines(pack: &Pack) -> Vec<TaskOutline> {
    let outline = |task: &TaskData| TaskOutline {
        label: task.label.clone(),
        class: task.class.clone(),
        parameters: task.parameters.clone(),
        cases: task.cases.len(),
        weight: weight(task),
        standard: pack.is_default(&task.label),
    };
    pack.tasks().iter().map(outline).collect()
}

/// Expected work of a dialogue in characters: the texts of a case, twice for tasks that repeat a whole document and may
/// ask again. Good enough for an order.
fn weight(task: &TaskData) -> u64 {
    let texts = |map: &serde_json::Map<String, serde_json::Value>| -> usize {
        map.values().filter_map(serde_json::Value::as_str).map(str::len).sum()
    };
    let case = task.cases.first().map_or(0, |case| {
        texts(&case.data) + texts(&case.prompt) + case.first_prompts.first().map_or(0, String::len)
    });
    let rounds = match TaskClass::resolve(&task.class, &task.version) {
        Ok(TaskClass::RdfSyntaxFix | TaskClass::Text2Sparql(_) | TaskClass::SparqlSyntaxFixing) => 2,
        _ => 1,
    };
    (case * rounds) as u64
}

/// The tasks of a plan, ready to be asked, by their index in the plan. Large graphs are left to those who judge: this
/// process starts sooner and stays small.
pub fn build(pack: &Pack, plan: &Plan) -> anyhow::Result<TaskList> {
    let labels: Vec<&str> = plan.tasks.iter().map(|task| pack.tasks()[task.index].label.as_str()).collect();
    build_labels(pack, &pack.graphs()?.build_deferred(), &labels)
}

fn build_labels(pack: &Pack, graphs: &GraphLibrary, labels: &[&str]) -> anyhow::Result<TaskList> {
    let built = pack.build_selected(graphs, |task| labels.contains(&task.label.as_str()))?;
    let built: Vec<Arc<Task>> = built.into_iter().map(Arc::new).collect();
    let in_order = labels.iter().map(|label| {
        let task = built.iter().find(|task| task.label.as_str() == *label);
        task.cloned().with_context(|| format!("the pack has no task `{label}`"))
    });
    in_order.collect()
}

/// What evaluation processes are told to load for a plan.
pub fn request(benchmark: &Benchmark, pack: &Pack, plan: &Plan) -> MaterialRequest {
    let label = |index: usize| pack.tasks()[index].label.to_string();
    MaterialRequest {
        pack: benchmark.pack.clone(),
        tasks: plan.tasks.iter().map(|task| label(task.index)).collect(),
    }
}

/// Loads what a [`MaterialRequest`] names: the loader of evaluation processes.
pub fn load(request: &serde_json::Value) -> Result<Vec<Arc<Task>>, String> {
    let load = || -> anyhow::Result<Vec<Arc<Task>>> {
        let request = MaterialRequest::deserialize(request)?;
        let labels: Vec<&str> = request.tasks.iter().map(String::as_str).collect();
        let pack = open_pack(&request.pack)?;
        Ok(build_labels(&pack, &pack.graphs()?.build(), &labels)?.to_vec())
    };
    load().map_err(|error| format!("{error:#}"))
}

//! The coordinator of this process over a data folder, and what it says about judged benchmarks in the folder.

use std::path::Path;
use std::sync::Arc;

use benchmarks::names::benchmark_of;
use coordinator::access::Access;
use coordinator::configuration::Configuration;
use coordinator::{BenchmarkCopy, Coordinator, CoordinatorOptions};
use domain::RunId;
use domain::control::Submission;
use results::RunDir;
use results::run_lock::LOCK;

use crate::kit::exit_code::explained;
use crate::kit::runtime::block_on;
use crate::place::task_files;

/// A coordinator in this process over a data folder.
pub fn coordinator(options: CoordinatorOptions, data_dir: &Path) -> anyhow::Result<Arc<Coordinator>> {
    Ok(Coordinator::start(options, queue::open("memory", None)?, results::Sink::new(data_dir)))
}

/// The same for its only user, where it only answers and does nothing by itself.
pub fn beside(data_dir: &Path) -> anyhow::Result<Arc<Access>> {
    let options = CoordinatorOptions { tends: false, ..CoordinatorOptions::local() };
    Ok(coordinator(options, data_dir)?.unnamed())
}

/// A submission of a configuration. It contains a pack only where a task file was compiled: others the coordinator of this
/// process reads itself.
pub fn submission(configuration: &Configuration) -> anyhow::Result<Submission> {
    let pack = task_files::sealed(&configuration.pack)?;
    Ok(Submission { configuration: serde_json::to_value(configuration)?, pack })
}

/// The configuration of a judged benchmark on this machine; `None` if there is none of this name.
pub async fn find(name: &RunId, data_dir: &Path) -> anyhow::Result<Option<Configuration>> {
    beside(data_dir)?.pipeline(name).await.map_err(explained)
}

/// Whether another process writes a run. Its lock is given back at once.
pub fn is_busy(dir: &RunDir) -> bool {
    // Looking at a run makes no file in it.
    dir.path().join(LOCK).exists() && dir.lock().is_err()
}

/// Whether a run belongs to a stage of this judged benchmark.
pub fn is_run_of(run: &RunId, pipeline: &str) -> bool {
    run.as_str() != pipeline && benchmark_of(run).as_str() == pipeline
}

/// The runs that the numbers of a judged benchmark of this machine come from: its own, and those of benchmarks whose answers and
/// verdicts it takes over. None if there is none of this name. Where its documents are missing or cannot be read, those of its name.
pub fn runs_in(pipeline: &RunId, data_dir: &Path) -> anyhow::Result<Vec<RunId>> {
    let found = RunDir::list(data_dir)?.into_iter().map(|found| found.dir.run());
    let mut runs: Vec<RunId> = found.filter(|run| is_run_of(run, pipeline.as_str())).collect();
    match block_on(documents(pipeline, data_dir)) {
        Ok(Some(documents)) => {
            let others: Vec<RunId> = documents.runs().filter(|run| !runs.contains(run)).cloned().collect();
            runs.extend(others);
        }
        Err(error) if runs.is_empty() => return Err(error),
        Ok(None) | Err(_) => {}
    }
    Ok(runs)
}

/// A copy of the documents of a judged benchmark of this machine; `None` if there is none of this name.
pub async fn documents(name: &RunId, data_dir: &Path) -> anyhow::Result<Option<BenchmarkCopy>> {
    beside(data_dir)?.copy_of(name).await.map_err(explained)
}

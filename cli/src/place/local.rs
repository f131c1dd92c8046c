//! A coordinator in this process over a data folder, and queries about judged benchmarks in the folder.

use std::path::Path;
use std::sync::Arc;

use benchmarks::names::benchmark_of;
use coordinator::configuration::Configuration;
use coordinator::{BenchmarkCopy, Coordinator, CoordinatorOptions};
use domain::control::{BenchmarkView, Control, RunPhase, Submission};
use domain::{ErrorCode, RunId};
use results::RunDir;
use results::run_dir::FoundRun;

use crate::kit::exit_code::explained;
use crate::kit::runtime::block_on;
use crate::place::live::LiveView;
use crate::place::{folders, task_files};

/// The state of a benchmark at which a process works.
pub const RUNNING: &str = "running";

/// A coordinator in this process over a data folder.
pub fn coordinator(config: CoordinatorOptions, data_dir: &Path) -> anyhow::Result<Arc<Coordinator>> {
    Ok(Coordinator::start(config, queue::open("memory", None)?, results::sink::folder(data_dir)))
}

/// A submission of a configuration. It contains a pack only where a task file was compiled: others the coordinator of this
/// process reads itself.
pub fn submission(configuration: &Configuration) -> anyhow::Result<Submission> {
    let pack = task_files::sealed(&configuration.pack)?;
    Ok(Submission { configuration: serde_json::to_value(configuration)?, pack })
}

/// The configuration of a judged benchmark on this machine; `None` if there is none of this name.
pub async fn find(name: &RunId, data_dir: &Path) -> anyhow::Result<Option<Configuration>> {
    beside(data_dir)?.unnamed().pipeline(name).await.map_err(explained)
}

/// The judged benchmarks of this machine, as in lists.
pub fn all(data_dir: &Path) -> anyhow::Result<Vec<BenchmarkView>> {
    block_on(async { beside(data_dir)?.unnamed().pipelines().await.map_err(explained) })
}

/// A run or judged benchmark of this machine as the coordinator of a fleet would show it; `None` if there is none of this name.
///
/// # Errors
/// The name cannot be one; the folder cannot be read.
pub fn view(name: &RunId, data_dir: &Path) -> anyhow::Result<Option<BenchmarkView>> {
    block_on(async {
        match beside(data_dir)?.unnamed().view(name).await {
            Err(error) if error.code == ErrorCode::NotFound => Ok(None),
            view => view.map(Some).map_err(explained),
        }
    })
}

/// A run or judged benchmark of this machine, what becomes of it, and what its process tells, if one works at it.
///
/// # Errors
/// There is none of this name; the folder cannot be read.
pub fn followed(
    name: &RunId,
    data_dir: &Path,
) -> anyhow::Result<(BenchmarkView, &'static str, Option<LiveView>)> {
    let mut view = view(name, data_dir)?.ok_or_else(|| folders::no_run(name, data_dir))?;
    let state = state_of(&view, &RunDir::list(data_dir)?);
    let live = (state == RUNNING).then(|| LiveView::read(&view, data_dir)).flatten();
    if let Some(live) = &live {
        live.add_to(&mut view);
    }
    Ok((view, state, live))
}

/// What becomes of a benchmark: whether a process works at it stands in no file of it.
pub fn state_of(view: &BenchmarkView, found: &[FoundRun]) -> &'static str {
    let name = view.run.as_str();
    let is_of_it = |run: &RunId| run.as_str() == name || is_run_of(run, name);
    let is_busy = |found: &FoundRun| is_of_it(&found.dir.run()) && found.dir.lock().is_err();
    match view.phase {
        RunPhase::Preparing | RunPhase::Active if found.iter().any(is_busy) => RUNNING,
        RunPhase::Preparing | RunPhase::Active => "interrupted",
        phase => phase.as_str(),
    }
}

/// Those of `runs` that belong to a judged benchmark; none if it has none.
pub fn runs_of(pipeline: &str, runs: impl IntoIterator<Item = RunId>) -> Vec<RunId> {
    runs.into_iter().filter(|run| is_run_of(run, pipeline)).collect()
}

/// Whether a run belongs to a stage of this judged benchmark.
pub fn is_run_of(run: &RunId, pipeline: &str) -> bool {
    run.as_str() != pipeline && benchmark_of(run).as_str() == pipeline
}

/// The runs that the numbers of a judged benchmark of this machine come from: its own, and those of benchmarks whose answers and
/// verdicts it takes over. None if there is none of this name. Where its documents are missing or cannot be read, those of its name.
pub fn runs_in(pipeline: &RunId, data_dir: &Path) -> anyhow::Result<Vec<RunId>> {
    let found = RunDir::list(data_dir)?;
    let mut runs = runs_of(pipeline.as_str(), found.iter().map(|found| found.dir.run()));
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
    beside(data_dir)?.unnamed().copy_of(name).await.map_err(explained)
}

/// Removes a judged benchmark of this machine with its runs; `None` if there is none of this name.
///
/// # Errors
/// A process writes one of its runs; another judged benchmark uses its answers; or, without `force`, it belongs to a
/// fleet and is not over, or cannot be read.
pub fn remove(name: &RunId, data_dir: &Path, force: bool) -> anyhow::Result<Option<RunId>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let access = beside(data_dir)?.unnamed();
        // One that cannot be read is removed by force.
        if matches!(access.pipeline(name).await, Ok(None)) {
            return Ok(None);
        }
        access.remove(name, force).await.map_err(explained)?;
        Ok(Some(name.clone()))
    })
}

/// Refuses a run of a fleet that is not over.
pub fn expect_removable(run: &RunId, data_dir: &Path) -> anyhow::Result<()> {
    block_on(async { beside(data_dir)?.unnamed().expect_removable(run).await.map_err(explained) })
}

/// A coordinator that only answers queries and does nothing by itself.
pub fn beside(data_dir: &Path) -> anyhow::Result<Arc<Coordinator>> {
    coordinator(CoordinatorOptions { tends: false, ..CoordinatorOptions::local() }, data_dir)
}

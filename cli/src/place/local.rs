//! Coordinators in this process over a data folder, and what is asked of them about judged benchmarks.

use std::path::Path;
use std::sync::Arc;

use coordinator::configuration::Configuration;
use coordinator::{Coordinator, CoordinatorOptions};
use domain::RunId;
use domain::control::{BenchmarkView, Control, Submission};
use results::RunDir;
use stages::RunName;

use crate::kit::exit_code::explained;
use crate::kit::runtime::block_on;

/// A coordinator in this process over a data folder.
pub fn coordinator(config: CoordinatorOptions, data_dir: &Path) -> anyhow::Result<Arc<Coordinator>> {
    Ok(Coordinator::start(config, queue::open("memory", None)?, results::sink::folder(data_dir)))
}

/// A submission of a configuration. It contains no pack: the coordinator of this process reads the pack itself.
pub fn submission(configuration: &Configuration) -> anyhow::Result<Submission> {
    Ok(Submission { configuration: serde_json::to_value(configuration)?, pack: None })
}

/// The configuration of a pipeline on this machine; `None` if there is no pipeline of this name.
pub async fn find(name: &RunId, data_dir: &Path) -> anyhow::Result<Option<Configuration>> {
    beside(data_dir)?.unnamed().pipeline(name).await.map_err(explained)
}

/// The pipelines of this machine, briefly.
pub fn all(data_dir: &Path) -> anyhow::Result<Vec<BenchmarkView>> {
    block_on(async { beside(data_dir)?.unnamed().pipelines().await.map_err(explained) })
}

/// Those of these runs that belong to a pipeline; none where it is none.
pub fn runs_of(pipeline: &str, runs: impl IntoIterator<Item = RunId>) -> Vec<RunId> {
    runs.into_iter().filter(|run| is_run_of(run, pipeline)).collect()
}

/// Whether a run is that of one of a pipeline's stages.
pub fn is_run_of(run: &RunId, pipeline: &str) -> bool {
    RunName::read(run).is_some_and(|name| name.pipeline == pipeline)
}

/// The runs of a pipeline of this machine; none where it is none.
pub fn runs_in(pipeline: &RunId, data_dir: &Path) -> anyhow::Result<Vec<RunId>> {
    let found = RunDir::list(data_dir)?;
    Ok(runs_of(pipeline.as_str(), found.iter().map(|found| found.dir.run())))
}

/// Removes a pipeline of this machine with its runs; `None` where the name is none of a pipeline.
///
/// # Errors
/// A process writes one of its runs; another pipeline takes its answers from it; without `force`, it is one of a fleet that
/// is not over.
pub fn remove(name: &RunId, data_dir: &Path, force: bool) -> anyhow::Result<Option<RunId>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let access = beside(data_dir)?.unnamed();
        if access.pipeline(name).await.map_err(explained)?.is_none() {
            return Ok(None);
        }
        access.remove(name, force).await.map_err(explained)?;
        Ok(Some(name.clone()))
    })
}

/// Sees that a run is none of a fleet that is not over.
pub fn expect_removable(run: &RunId, data_dir: &Path) -> anyhow::Result<()> {
    block_on(async { beside(data_dir)?.unnamed().expect_removable(run).await.map_err(explained) })
}

/// A coordinator that looks at what there is, and does nothing by itself.
pub fn beside(data_dir: &Path) -> anyhow::Result<Arc<Coordinator>> {
    let config = CoordinatorOptions { tends: false, ..CoordinatorOptions::local() };
    coordinator(config, data_dir)
}

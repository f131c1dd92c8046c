//! A folder of this machine as a coordinator shows one: what lies there at that moment, and what the processes say that work at it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coordinator::access::Access;
use domain::control::{
    BenchmarkCommand, BenchmarkView, Condition, Control, DeadLetterView, ExportItem, Feed, ModelNeed,
    RunPhase, Submission, WorkerView,
};
use domain::exchange::Reply;
use domain::pools::{PoolStates, ServerUsage};
use domain::{ErrorCode, FailureCause, RunId, ServiceError, WorkerId, machine};
use futures::stream;
use results::RunDir;

use crate::place::live::LiveView;
use crate::place::local;

/// Time between two looks at a benchmark that is watched.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The benchmarks of a data folder.
pub struct Folder {
    data_dir: PathBuf,
    access: Arc<Access>,
}

impl Folder {
    /// The folder at this path. Requires a runtime.
    pub fn at(data_dir: &Path) -> anyhow::Result<Self> {
        Ok(Self { data_dir: data_dir.to_owned(), access: local::beside(data_dir)? })
    }

    /// A coordinator that has read nothing yet: whoever works at a run writes beside this process.
    fn fresh(&self) -> Reply<Arc<Access>> {
        let failed = |error: anyhow::Error| ServiceError::new(ErrorCode::Internal, format!("{error:#}"));
        local::beside(&self.data_dir).map_err(failed)
    }

    /// Adds what only this machine knows.
    fn completed(&self, mut view: BenchmarkView, found: &[RunDir]) -> BenchmarkView {
        if view.condition.is_some() || !matches!(view.phase, RunPhase::Preparing | RunPhase::Active) {
            return view;
        }
        let name = view.run.as_str();
        let is_of_it = |run: &RunId| run.as_str() == name || local::is_run_of(run, name);
        let is_busy = found.iter().any(|dir| is_of_it(&dir.run()) && local::is_busy(dir));
        view.condition = Some(if is_busy { Condition::Running } else { Condition::Interrupted });
        if is_busy && let Some(live) = LiveView::read(&view, &self.data_dir) {
            live.add_to(&mut view, machine::now());
        }
        view
    }

    fn runs(&self) -> Reply<Vec<RunDir>> {
        let found = RunDir::list(&self.data_dir);
        let found = found.map_err(|error| ServiceError::new(ErrorCode::Unavailable, error.to_string()))?;
        Ok(found.into_iter().map(|found| found.dir).collect())
    }

    /// An error with the folder that it is about.
    fn told(&self, error: ServiceError) -> ServiceError {
        if error.code != ErrorCode::NotFound {
            return error;
        }
        let folder = self.data_dir.display();
        let hint = "`kgfleet status --fleet here` lists the runs, --data-dir selects another folder";
        ServiceError::new(error.code, format!("{} in {folder}; {hint}", error.message))
    }
}

#[async_trait]
impl Control for Folder {
    async fn list(&self) -> Reply<Vec<BenchmarkView>> {
        let (listed, found) = (self.fresh()?.list().await?, self.runs()?);
        Ok(listed.into_iter().map(|view| self.completed(view, &found)).collect())
    }

    async fn view(&self, name: &RunId) -> Reply<BenchmarkView> {
        let view = self.fresh()?.view(name).await.map_err(|error| self.told(error))?;
        Ok(self.completed(view, &self.runs()?))
    }

    fn watch<'a>(&'a self, name: &'a RunId) -> Feed<'a, BenchmarkView> {
        // `None` is the beginning, then whether it goes on.
        Box::pin(stream::unfold(None, move |goes_on: Option<bool>| async move {
            match goes_on {
                Some(false) => return None,
                Some(true) => tokio::time::sleep(LOOK_EVERY).await,
                None => {}
            }
            let view = self.view(name).await;
            let goes_on = view.as_ref().is_ok_and(BenchmarkView::goes_on);
            Some((view, Some(goes_on)))
        }))
    }

    async fn command(&self, name: &RunId, command: BenchmarkCommand) -> Reply<BenchmarkView> {
        if self.view(name).await?.condition == Some(Condition::Running) {
            let message = format!(
                "a process of this machine works at {name}: Ctrl-C stops it, and `kgfleet resume {name}` goes on"
            );
            return Err(ServiceError::new(ErrorCode::Conflict, message));
        }
        let view = self.access.command(name, command).await?;
        Ok(self.completed(view, &self.runs()?))
    }

    async fn submit(&self, submission: Submission) -> Reply<BenchmarkView> {
        self.access.submit(submission).await
    }

    async fn extend(&self, name: &RunId, submission: Submission) -> Reply<BenchmarkView> {
        self.access.extend(name, submission).await
    }

    async fn retry(&self, name: &RunId, causes: &[FailureCause]) -> Reply<u64> {
        self.access.retry(name, causes).await
    }

    async fn remove(&self, name: &RunId, force: bool) -> Reply<()> {
        self.access.remove(name, force).await.map_err(|error| self.told(error))
    }

    fn records<'a>(&'a self, name: &'a RunId) -> Feed<'a, ExportItem> {
        self.access.records(name)
    }

    async fn workers(&self) -> Reply<Vec<WorkerView>> {
        self.access.workers().await
    }

    async fn drain_worker(&self, worker: &WorkerId) -> Reply<()> {
        self.access.drain_worker(worker).await
    }

    async fn dead_letters(&self, name: &RunId, unit: Option<u64>) -> Reply<Vec<DeadLetterView>> {
        self.access.dead_letters(name, unit).await
    }

    async fn requeue(&self, name: &RunId, units: &[u64]) -> Reply<u64> {
        self.access.requeue(name, units).await
    }

    async fn check(&self) -> Reply<Vec<String>> {
        self.access.check().await
    }

    async fn needs(&self, models: &[String]) -> Reply<Vec<ModelNeed>> {
        self.access.needs(models).await
    }

    async fn note_pools(&self, states: PoolStates) -> Reply<()> {
        self.access.note_pools(states).await
    }

    async fn note_server_usage(&self, ended: Vec<ServerUsage>) -> Reply<()> {
        self.access.note_server_usage(ended).await
    }

    async fn server_usage(&self) -> Reply<Vec<ServerUsage>> {
        self.access.server_usage().await
    }
}

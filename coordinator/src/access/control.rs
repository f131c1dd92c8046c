//! What people may ask for.

use domain::caller::CallerRole;
use domain::control::{
    BenchmarkCommand, BenchmarkView, Control, DeadLetterView, ExportItem, Feed, ModelNeed, Submission,
    WorkerView,
};
use domain::exchange::Reply;
use domain::{FailureCause, RunId, WorkerId};
use futures::StreamExt;

use crate::access::{Access, redact};
use crate::errors::of_queue;

#[async_trait::async_trait]
impl Control for Access {
    async fn submit(&self, submission: Submission) -> Reply<BenchmarkView> {
        self.take_submission()?;
        self.serves()?;
        let name = self.parts.benchmarks.submit(submission).await?;
        self.noted(&name, "submitted").await
    }

    async fn extend(&self, name: &RunId, submission: Submission) -> Reply<BenchmarkView> {
        self.take_submission()?;
        self.serves()?;
        let changes = self.parts.benchmarks.extend(name, submission).await?;
        let mut view = self.noted(name, "extended").await?;
        view.notes.splice(0..0, changes);
        Ok(view)
    }

    async fn list(&self) -> Reply<Vec<BenchmarkView>> {
        self.serves()?;
        Ok(self.parts.views.list().await?.into_iter().map(|view| self.shown(view)).collect())
    }

    async fn view(&self, name: &RunId) -> Reply<BenchmarkView> {
        self.serves()?;
        Ok(self.shown(self.parts.views.view(name).await?))
    }

    fn watch<'a>(&'a self, name: &'a RunId) -> Feed<'a, BenchmarkView> {
        let views = self.parts.views.watch(name);
        // Queue and sink may be found not to belong together meanwhile.
        Box::pin(views.map(|view| self.serves().and(view).map(|view| self.shown(view))))
    }

    async fn command(&self, name: &RunId, command: BenchmarkCommand) -> Reply<BenchmarkView> {
        self.serves()?;
        self.parts.benchmarks.command(name, command).await?;
        let what = match command {
            BenchmarkCommand::Pause => "paused",
            BenchmarkCommand::Resume => "resumed",
            BenchmarkCommand::Cancel => "cancelled",
        };
        self.noted(name, what).await
    }

    async fn retry(&self, name: &RunId, causes: &[FailureCause]) -> Reply<u64> {
        self.serves()?;
        let dialogues = self.parts.benchmarks.retry(name, causes).await?;
        self.note(name, format!("retried {dialogues} dialogues")).await;
        Ok(dialogues)
    }

    async fn remove(&self, name: &RunId, force: bool) -> Reply<()> {
        self.serves()?;
        // The history goes with the run; who removed it stands in the log.
        tracing::info!(run = %name, who = self.caller.name(), force, "removing");
        self.parts.benchmarks.remove(name, force).await
    }

    fn records<'a>(&'a self, name: &'a RunId) -> Feed<'a, ExportItem> {
        let all = self.parts.views.records(name);
        if self.caller.has(CallerRole::Operator) {
            return all;
        }
        let mut protected = false;
        Box::pin(all.map(move |item| redact::item(item?, &mut protected)))
    }

    async fn workers(&self) -> Reply<Vec<WorkerView>> {
        let mut workers = self.parts.views.workers().await?;
        if !self.caller.has(CallerRole::Operator) {
            // Of a run that is not here, nobody knows.
            let is_protected =
                |run: &RunId| self.parts.loaded.get(run).is_none_or(|run| run.manifest.protected);
            workers.iter_mut().for_each(|worker| redact::worker(worker, is_protected));
        }
        Ok(workers)
    }

    async fn drain_worker(&self, worker: &WorkerId) -> Reply<()> {
        self.serves()?;
        self.parts.fleet.drain(worker).await?;
        for run in self.parts.loaded.live() {
            self.note(run.id(), format!("drained worker {worker}")).await;
        }
        Ok(())
    }

    async fn dead_letters(&self, name: &RunId, unit: Option<u64>) -> Reply<Vec<DeadLetterView>> {
        self.serves()?;
        self.parts.benchmarks.dead_letters(name, unit).await
    }

    async fn requeue(&self, name: &RunId, units: &[u64]) -> Reply<u64> {
        self.serves()?;
        let requeued = self.parts.benchmarks.requeue(name, units).await?;
        self.note(name, format!("gave {requeued} units another chance")).await;
        Ok(requeued)
    }

    async fn needs(&self, models: &[String]) -> Reply<Vec<ModelNeed>> {
        self.serves()?;
        self.parts.fleet.needs(models).await
    }

    async fn check(&self) -> Reply<Vec<String>> {
        let mut warnings = Vec::new();
        match self.parts.queue.raw().check().await {
            Ok(found) => warnings.extend(found),
            Err(error) => warnings.insert(0, of_queue(&error).message),
        }
        warnings.extend(self.parts.store.check().await);
        Ok(warnings)
    }
}

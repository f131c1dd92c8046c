//! What people may ask for.

use domain::caller::CallerRole;
use domain::control::{
    BenchmarkCommand, BenchmarkView, Control, DeadLetterView, ExportItem, Feed, ModelNeed, Submission,
    WorkerView,
};
use domain::exchange::Reply;
use domain::pools::{PoolStates, ServerUsage};
use domain::{FailureCause, RunId, WorkerId};
use futures::{StreamExt, stream};

use crate::access::{Access, redact};
use crate::errors::of_queue;
use crate::records::server_usage::{ServerUsageFile, server_usages};
use crate::views::history::SUBMITTED;

#[async_trait::async_trait]
impl Control for Access {
    async fn submit(&self, submission: Submission) -> Reply<BenchmarkView> {
        self.take_submission()?;
        self.serves()?;
        self.expect_room(&submission, None).await?;
        self.does("submit", name_of(&submission)).await?;
        let name = self.parts.benchmarks.submit(submission).await?;
        self.noted(&name, SUBMITTED).await
    }

    async fn extend(&self, name: &RunId, submission: Submission) -> Reply<BenchmarkView> {
        self.take_submission()?;
        self.serves()?;
        self.expect_room(&submission, Some(name)).await?;
        self.does("extend", name).await?;
        let changes = self.parts.benchmarks.extend(name, submission).await?;
        let mut view = self.noted(name, "extended").await?;
        view.notes.splice(0..0, changes);
        Ok(view)
    }

    async fn list(&self) -> Reply<Vec<BenchmarkView>> {
        self.serves()?;
        let mut shown = Vec::new();
        for view in self.parts.views.list().await? {
            shown.push(self.shown(view).await?);
        }
        Ok(shown)
    }

    async fn view(&self, name: &RunId) -> Reply<BenchmarkView> {
        self.serves()?;
        self.shown(self.parts.views.view(name).await?).await
    }

    fn watch<'a>(&'a self, name: &'a RunId) -> Feed<'a, BenchmarkView> {
        let views = self.parts.views.watch(name);
        // Who watches looks once, from the first words on.
        Box::pin(stream::unfold((views, false), move |(mut views, mut looks)| async move {
            let view = views.next().await?;
            // Queue and sink may be found not to belong together meanwhile.
            let shown = match self.serves().and(view) {
                Ok(view) => self.shown_to(view, &mut looks).await,
                Err(error) => Err(error),
            };
            Some((shown, (views, looks)))
        }))
    }

    async fn command(&self, name: &RunId, command: BenchmarkCommand) -> Reply<BenchmarkView> {
        self.serves()?;
        let (act, what) = match command {
            BenchmarkCommand::Pause => ("pause", "paused"),
            BenchmarkCommand::Resume => ("resume", "resumed"),
            BenchmarkCommand::Cancel => ("cancel", "cancelled"),
        };
        self.does(act, name).await?;
        self.parts.benchmarks.command(name, command).await?;
        self.noted(name, what).await
    }

    async fn retry(&self, name: &RunId, causes: &[FailureCause]) -> Reply<u64> {
        self.serves()?;
        self.does("retry", name).await?;
        let dialogues = self.parts.benchmarks.retry(name, causes).await?;
        self.note(name, format!("retried {dialogues} dialogues")).await;
        Ok(dialogues)
    }

    async fn remove(&self, name: &RunId, force: bool) -> Reply<()> {
        self.serves()?;
        // The history goes with the run; who removed it stands in the audit log.
        self.does(if force { "remove by force" } else { "remove" }, name).await?;
        self.parts.benchmarks.remove(name, force).await
    }

    fn records<'a>(&'a self, name: &'a RunId) -> Feed<'a, ExportItem> {
        let all = self.parts.views.records(name);
        Box::pin(stream::unfold((all, false), move |(mut all, mut protected)| async move {
            let item = self.exported(all.next().await?, &mut protected).await;
            Some((item, (all, protected)))
        }))
    }

    async fn workers(&self) -> Reply<Vec<WorkerView>> {
        self.serves()?;
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
        self.does("drain", worker).await?;
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
        self.does("requeue", name).await?;
        let requeued = self.parts.benchmarks.requeue(name, units).await?;
        self.note(name, format!("gave {requeued} units another chance")).await;
        Ok(requeued)
    }

    async fn needs(&self, models: &[String]) -> Reply<Vec<ModelNeed>> {
        self.serves()?;
        self.parts.fleet.needs(models).await
    }

    async fn note_pools(&self, states: PoolStates) -> Reply<()> {
        self.serves()?;
        self.parts.fleet.note_pools(&states).await
    }

    async fn note_server_usage(&self, ended: Vec<ServerUsage>) -> Reply<()> {
        self.serves()?;
        let files: Vec<ServerUsageFile> = ended.iter().map(ServerUsageFile::of).collect::<Result<_, _>>()?;
        for file in files {
            self.parts.health.note_sink(file.put(&self.parts.store).await)?;
        }
        Ok(())
    }

    async fn server_usage(&self) -> Reply<Vec<ServerUsage>> {
        self.serves()?;
        self.parts.health.note_sink(server_usages(&self.parts.store).await)
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

/// The name in a configuration, which becomes the beginning of a run's name.
fn name_of(submission: &Submission) -> &str {
    submission.configuration.get("name").and_then(|name| name.as_str()).unwrap_or_default()
}

//! The coordinator: its public interface.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::caller::Caller;
use domain::control::{
    BenchmarkCommand, BenchmarkView, Control, DeadLetterView, ExportItem, Feed, Submission, WorkerView,
};
use domain::exchange::{
    Delivery, Orders, RateBudget, Receipt, Registered, Registration, Reply, Report, RunMaterial, WorkExchange,
};
use domain::{ErrorCode, FailureCause, InstanceId, RunId, ServiceError, WorkerId};
use futures::{StreamExt, stream};
use history::{EventLog, Observed};
use queue::QueueStore;
use results::Sink;

use crate::access::Submissions;
use crate::benchmarks::Pipelines;
use crate::fleet::backlog::Backlog;
use crate::fleet::reservations::SuspectReservations;
use crate::fleet::workers::Statuses;
use crate::health::{Health, Uptime};
use crate::options::{Adopt, CoordinatorOptions};
use crate::plan::configuration::Configuration;
use crate::queue::client::QueueClient;
use crate::queue::measured::Measured;
use crate::queue::signal::WorkSignal;
use crate::queue_owner::OwnedBy;
use crate::records::loaded::LoadedRuns;
use crate::records::packs::Packs;
use crate::records::store::Store;
use crate::runs::commit::RecordLogs;
use crate::runs::tend::{self, Tending};
use crate::views::dialogues::Readings;
use crate::views::run::WATCH_EVERY;

/// A coordinator over a queue and a sink. Any number of coordinators may share them; none has state that another one could
/// not rebuild.
pub struct Coordinator {
    pub(crate) config: CoordinatorOptions,
    pub(crate) clock: Uptime,
    pub(crate) health: Arc<Health>,
    /// The event log of leases and records.
    pub(crate) events: EventLog,
    pub(crate) queue: Arc<dyn QueueStore>,
    pub(crate) storage: Arc<Store>,
    pub(crate) packs: Arc<Packs>,
    pub(crate) runs: Arc<LoadedRuns>,
    pub(crate) queues: Arc<QueueClient>,
    pub(crate) commits: Arc<RecordLogs>,
    pub(crate) signal: Arc<WorkSignal>,
    pub(crate) backlog: Backlog,
    pub(crate) pipelines: Pipelines,
    pub(crate) patience: Mutex<SuspectReservations>,
    pub(crate) submissions: Submissions,
    pub(crate) readings: Readings,
    pub(crate) statuses: Statuses,
    pub(crate) known_store: OwnedBy,
    /// Whether it is shutting down: calls no longer wait for work.
    pub(crate) closing: AtomicBool,
    tending: Tending,
}

impl Coordinator {
    /// Starts a coordinator. Needs a Tokio runtime; it ends when dropped.
    pub fn start(config: CoordinatorOptions, queue: Arc<dyn QueueStore>, sink: Arc<dyn Sink>) -> Arc<Self> {
        Self::start_noting(config, queue, sink, EventLog::none())
    }

    /// The same, with an event log of leases and records.
    pub fn start_noting(
        config: CoordinatorOptions,
        queue: Arc<dyn QueueStore>,
        sink: Arc<dyn Sink>,
        events: EventLog,
    ) -> Arc<Self> {
        let queue: Arc<dyn QueueStore> =
            if service_kit::metrics::is_collecting() { Arc::new(Measured(queue)) } else { queue };
        let queue: Arc<dyn QueueStore> =
            if events.is_on() { Arc::new(Observed::new(queue, events.clone())) } else { queue };
        let (clock, health) = (Uptime::start(), Arc::new(Health::default()));
        let storage = Arc::new(Store::new(sink, config.scope));
        let packs = Arc::new(Packs::new(Arc::clone(&storage)));
        let runs = Arc::new(LoadedRuns::new(Arc::clone(&storage), Arc::clone(&packs), clock));
        let signal = Arc::new(WorkSignal::default());
        let queues = Arc::new(QueueClient::new(
            config.clone(),
            Arc::clone(&queue),
            Arc::clone(&storage),
            Arc::clone(&runs),
            Arc::clone(&signal),
            Arc::clone(&health),
        ));
        let commits = Arc::new(RecordLogs::new(
            Arc::clone(&queues),
            Arc::clone(&storage),
            Arc::clone(&runs),
            Arc::clone(&health),
            events.clone(),
            clock,
        ));
        let coordinator = Arc::new(Self {
            tending: Tending::new(&config, clock.now()),
            pipelines: Pipelines::default(),
            patience: Mutex::default(),
            submissions: Submissions::default(),
            readings: Readings::default(),
            statuses: Statuses::default(),
            known_store: OwnedBy::default(),
            closing: AtomicBool::new(false),
            config,
            clock,
            health,
            events,
            queue,
            storage,
            packs,
            runs,
            queues,
            commits,
            signal,
            backlog: Backlog::default(),
        });
        if coordinator.config.tends {
            tokio::spawn(tend::rounds(Arc::downgrade(&coordinator), coordinator.config.tend_every));
        }
        coordinator
    }

    /// Checks that the queue belongs to this sink and the sink to this queue, and binds them if they belong to none, or as
    /// `adopt` says. Call it before serving; afterwards it is checked periodically.
    ///
    /// # Errors
    /// One of them belongs to another, see the message; queue or sink cannot be reached.
    pub async fn bind(&self, adopt: Adopt) -> Result<(), ServiceError> {
        self.check_bond(adopt).await
    }

    /// Whether it can work now.
    ///
    /// # Errors
    /// Why not: the queue cannot be reached, the sink cannot be written, runs are still being loaded.
    pub fn ready(&self) -> Result<(), ServiceError> {
        self.fitness()
    }

    /// Why records cannot be stored, if so.
    pub fn sink_trouble(&self) -> Option<String> {
        self.health.sink_trouble()
    }

    /// Announces the shutdown: calls that wait for work return without any, so that workers go to another coordinator.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.signal.touch();
    }

    /// Closes the record logs before the process ends, so that a power cut afterwards loses nothing.
    pub async fn close_logs(&self) {
        self.commits.close_logs().await;
    }

    /// Tends all runs once. This happens periodically if [`CoordinatorOptions::tends`] is set.
    ///
    /// # Errors
    /// The queue cannot be reached.
    pub async fn tend(&self) -> Result<(), ServiceError> {
        self.tending.round(self).await
    }

    /// The configuration of a pipeline; `None` if there is none of this name.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn pipeline(&self, name: &RunId) -> Result<Option<Configuration>, ServiceError> {
        Ok(self.find_pipeline(name).await?.map(|pipeline| pipeline.configuration))
    }

    /// Stores records on behalf of a caller.
    pub(crate) async fn deliver_as(&self, deliveries: Vec<Delivery>, caller: &Caller) -> Reply<Vec<Receipt>> {
        self.health.serves()?;
        self.commits.deliver(deliveries, caller).await
    }
}

/// Whether a configuration is a judged benchmark.
fn is_pipeline(submission: &Submission) -> bool {
    submission.configuration.get("pipeline").is_some_and(|kind| !kind.is_null())
}

#[async_trait::async_trait]
impl WorkExchange for Coordinator {
    async fn register(&self, registration: Registration) -> Reply<Registered> {
        self.health.serves()?;
        self.register_worker(registration).await
    }

    async fn exchange(&self, report: Report) -> Reply<Orders> {
        self.health.serves()?;
        self.answer_report(report).await
    }

    async fn deliver(&self, deliveries: Vec<Delivery>) -> Reply<Vec<Receipt>> {
        self.health.serves()?;
        self.commits.deliver(deliveries, &Caller::anyone()).await
    }

    async fn run_material(&self, run: &RunId) -> Reply<RunMaterial> {
        self.health.serves()?;
        Ok(self.runs.newest(run).await?.material.clone())
    }

    async fn pack(&self, hash: &str) -> Reply<Arc<[u8]>> {
        self.health.serves()?;
        self.packs.sealed(hash).await
    }

    async fn take_rate(&self, budget: &RateBudget, permits: u32) -> Reply<Option<Duration>> {
        self.health.serves()?;
        self.take_permits(budget, permits).await
    }

    async fn deregister(&self, worker: &WorkerId, instance: &InstanceId) -> Reply<()> {
        self.health.serves()?;
        self.deregister_worker(worker, instance).await
    }
}

#[async_trait::async_trait]
impl Control for Coordinator {
    async fn submit(&self, submission: Submission) -> Reply<BenchmarkView> {
        self.health.serves()?;
        if is_pipeline(&submission) {
            let name = self.submit_pipeline(submission).await?;
            return self.pipeline_view(&name).await;
        }
        self.submit_run(submission).await
    }

    async fn extend(&self, run: &RunId, submission: Submission) -> Reply<BenchmarkView> {
        self.health.serves()?;
        if !self.is_pipeline(run).await? {
            return self.extend_run(run, submission).await;
        }
        let changes = self.extend_pipeline(run, submission).await?;
        let mut view = self.pipeline_view(run).await?;
        view.notes.splice(0..0, changes);
        Ok(view)
    }

    async fn runs(&self) -> Reply<Vec<BenchmarkView>> {
        self.health.serves()?;
        let mut views = self.views().await?;
        views.extend(self.pipelines().await?);
        Ok(views)
    }

    async fn run(&self, run: &RunId) -> Reply<BenchmarkView> {
        self.health.serves()?;
        if self.is_pipeline(run).await? {
            return self.pipeline_view(run).await;
        }
        let mut known = self.runs.known(run).await;
        if self.storage.sink.has_locks()
            && let Ok(over) = &known
            && over.phase().is_over()
        {
            // Another coordinator may have extended it.
            known = self.runs.newest(run).await;
        }
        let known = match known {
            Ok(run) => run,
            Err(error) => return self.view_of_broken(run, error).await,
        };
        // Records come to other coordinators, too: what one of them has shown, the next one shows. Where they cannot be
        // read now, a run that goes on is shown as it was last seen, with its trouble.
        let run = match self.runs.followed(run, self.config.tend_every).await {
            Err(error) if error.code != ErrorCode::NotFound && !known.phase().is_over() => known,
            followed => followed?,
        };
        Ok(self.view_now(&run).await)
    }

    fn watch<'a>(&'a self, run: &'a RunId) -> Feed<'a, BenchmarkView> {
        // `None` is the beginning, then whether the last view was that of a run that is over.
        Box::pin(stream::unfold(None, move |over: Option<bool>| async move {
            match over {
                Some(true) => return None,
                Some(false) => tokio::time::sleep(WATCH_EVERY).await,
                None => {}
            }
            let view = self.run(run).await;
            let over = view.as_ref().map_or(true, |view| view.phase.is_over());
            Some((view, Some(over)))
        }))
    }

    async fn command(&self, run: &RunId, command: BenchmarkCommand) -> Reply<BenchmarkView> {
        self.health.serves()?;
        if self.is_pipeline(run).await? {
            self.command_pipeline(run, command).await?;
            return self.pipeline_view(run).await;
        }
        let run = self.command_run(run, command).await?;
        Ok(self.view_now(&run).await)
    }

    async fn retry(&self, run: &RunId, causes: &[FailureCause]) -> Reply<u64> {
        self.health.serves()?;
        match self.is_pipeline(run).await? {
            true => self.retry_pipeline(run, causes).await,
            false => self.retry_run(run, causes).await,
        }
    }

    async fn remove(&self, run: &RunId, force: bool) -> Reply<()> {
        self.health.serves()?;
        match self.is_pipeline(run).await? {
            true => self.remove_pipeline(run, force).await,
            false => self.remove_run(run, force).await,
        }
    }

    fn records<'a>(&'a self, run: &'a RunId) -> Feed<'a, ExportItem> {
        Box::pin(stream::once(self.copy_of(run)).flat_map(move |copied| match copied.transpose() {
            None => self.export(run),
            Some(copied) => {
                let item = copied.map(|json| ExportItem::Manifest(json.into()));
                Box::pin(stream::once(std::future::ready(item))) as Feed<'a, ExportItem>
            }
        }))
    }

    async fn workers(&self) -> Reply<Vec<WorkerView>> {
        self.worker_views().await
    }

    async fn drain_worker(&self, worker: &WorkerId) -> Reply<()> {
        self.health.serves()?;
        self.drain(worker).await
    }

    async fn dead_letters(&self, run: &RunId, unit: Option<u64>) -> Reply<Vec<DeadLetterView>> {
        self.health.serves()?;
        self.dead(run, unit).await
    }

    async fn requeue(&self, run: &RunId, units: &[u64]) -> Reply<u64> {
        self.health.serves()?;
        self.requeue_units(run, units).await
    }

    async fn check(&self) -> Reply<Vec<String>> {
        self.check_all().await
    }
}

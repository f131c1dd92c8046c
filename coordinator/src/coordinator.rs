//! A coordinator as others use it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::caller::Caller;
use domain::control::{
    Control, DeadLetterView, ExportItem, Feed, RunCommand, RunView, Submission, WorkerView,
};
use domain::exchange::{
    Delivery, Orders, RateBudget, Receipt, Registered, Registration, Reply, Report, RunMaterial, WorkExchange,
};
use domain::{ErrorCode, FailureCause, InstanceId, RunId, ServiceError, WorkerId};
use futures::{StreamExt, stream};
use queue::QueueStore;
use results::Sink;

use crate::config::CoordinatorConfig;
use crate::configuration::Benchmark;
use crate::core::Core;
use crate::storage::Storage;
use crate::submit::Proposal;
use crate::tend::Tending;
use crate::view::{Detail, WATCH_EVERY};

/// A coordinator over a queue and a sink. Any number of them may work on the same two; none of them knows anything that
/// another one could not find out.
pub struct Coordinator {
    core: Arc<Core>,
    tending: Arc<Tending>,
}

impl Coordinator {
    /// Begins to look after runs. Needs a runtime of tokio; ends when it is dropped.
    pub fn start(config: CoordinatorConfig, queue: Arc<dyn QueueStore>, sink: Sink) -> Arc<Self> {
        let storage = Storage::new(sink, config.scope);
        let core = Arc::new(Core::new(config, queue, storage));
        let tending = Arc::new(Tending::new(&core));
        if core.config.tends {
            let rounds = Arc::clone(&tending).rounds(Arc::downgrade(&core), core.config.tend_every);
            tokio::spawn(rounds);
        }
        Arc::new(Self { core, tending })
    }

    /// Sees that the queue belongs to this place of records, and makes it so where it belongs to none; with `adopt`
    /// whatever it belongs to. To be called before anything is served; afterwards it is looked at again and again.
    ///
    /// # Errors
    /// It belongs to another place, see the message; queue or sink cannot be reached.
    pub async fn bind(&self, adopt: bool) -> Result<(), ServiceError> {
        self.core.check_bond(adopt).await
    }

    /// Whether it can do its work now.
    ///
    /// # Errors
    /// What is in its way: the queue cannot be reached, the sink not be written, runs are still being loaded.
    pub fn ready(&self) -> Result<(), ServiceError> {
        self.core.fitness()
    }

    /// What keeps records from being stored, if anything does.
    pub fn sink_trouble(&self) -> Option<String> {
        self.core.health.sink_trouble()
    }

    /// It is about to end: who waits for work is told that there is none, and goes elsewhere.
    pub fn close(&self) {
        self.core.closing.store(true, Ordering::Relaxed);
        self.core.backlog.touch();
    }

    /// Closes the record logs, for a process that is about to end: from then on a power cut takes nothing from what is known
    /// of them.
    pub async fn close_logs(&self) {
        self.core.close_logs().await;
    }

    /// Looks after all runs once. Happens by itself, unless [`CoordinatorConfig::tends`] says otherwise.
    ///
    /// # Errors
    /// The queue cannot be reached.
    pub async fn tend(&self) -> Result<(), ServiceError> {
        self.tending.round(&self.core).await
    }

    /// What a submission would begin, or go on with: the unfinished run of the same configuration.
    ///
    /// # Errors
    /// The submission cannot be planned; the sink cannot be read.
    pub async fn propose(&self, submission: Submission) -> Result<Proposal, ServiceError> {
        self.core.propose(submission).await
    }

    /// A run by its name, to go on with as it was configured.
    ///
    /// # Errors
    /// It is not there, its pack is another one by now, or its records could only be written in the clear.
    pub async fn propose_existing(&self, run: &RunId) -> Result<Proposal, ServiceError> {
        self.core.propose_existing(run).await
    }

    /// A run by its name, to go on with under this configuration: the same one or, with `extend`, one that adds to it.
    ///
    /// # Errors
    /// As for [`propose_existing`](Self::propose_existing); the configurations differ in what may not change.
    pub async fn propose_change(
        &self,
        run: &RunId,
        submission: Submission,
        extend: bool,
    ) -> Result<Proposal, ServiceError> {
        self.core.propose_change(run, submission, extend).await
    }

    /// Begins a run that was proposed, or goes on with it.
    ///
    /// # Errors
    /// Another process writes the run; queue or sink cannot be reached.
    pub async fn begin(&self, proposal: &Proposal) -> Result<RunView, ServiceError> {
        let run = self.core.begin(proposal).await?;
        Ok(self.core.view(&run, Detail::Full).await)
    }

    /// The configuration of a pipeline; `None` where there is none of this name.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn pipeline(&self, name: &RunId) -> Result<Option<Benchmark>, ServiceError> {
        Ok(self.core.pipeline(name).await?.map(|pipeline| pipeline.benchmark))
    }

    /// Adds models to a pipeline.
    ///
    /// # Errors
    /// There is none of this name; the configuration differs in something else, see the message.
    pub async fn extend(&self, name: &RunId, submission: Submission) -> Result<RunView, ServiceError> {
        self.core.extend_pipeline(name, submission).await?;
        self.core.pipeline_view(name).await
    }

    /// Carries out a call, unless nothing may be said here because the records are not those of the queue.
    fn serve<'a, T: Send + 'a>(
        &'a self,
        call: impl Future<Output = Result<T, ServiceError>> + Send + 'a,
    ) -> Reply<'a, T> {
        Box::pin(async move {
            self.core.serves()?;
            call.await
        })
    }

    /// Stores records on behalf of a caller.
    pub(crate) fn deliver_as<'a>(
        &'a self,
        deliveries: Vec<Delivery>,
        caller: &'a Caller,
    ) -> Reply<'a, Vec<Receipt>> {
        self.serve(self.core.deliver_records(deliveries, caller))
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

/// Whether a configuration is one of a judged benchmark.
fn is_pipeline(submission: &Submission) -> bool {
    submission.configuration.get("pipeline").is_some_and(|kind| !kind.is_null())
}

impl WorkExchange for Coordinator {
    fn register(&self, registration: Registration) -> Reply<'_, Registered> {
        self.serve(self.core.register_worker(registration))
    }

    fn exchange(&self, report: Report) -> Reply<'_, Orders> {
        self.serve(self.core.answer_report(report))
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> Reply<'_, Vec<Receipt>> {
        self.serve(async move { self.core.deliver_records(deliveries, &Caller::anyone()).await })
    }

    fn run_material<'a>(&'a self, run: &'a RunId) -> Reply<'a, RunMaterial> {
        self.serve(async move { Ok(self.core.known(run).await?.material.clone()) })
    }

    fn pack<'a>(&'a self, hash: &'a str) -> Reply<'a, Arc<[u8]>> {
        self.serve(self.core.sealed_pack(hash))
    }

    fn take_rate<'a>(&'a self, budget: &'a RateBudget, permits: u32) -> Reply<'a, Option<Duration>> {
        self.serve(self.core.take_permits(budget, permits))
    }

    fn deregister<'a>(&'a self, worker: &'a WorkerId, instance: &'a InstanceId) -> Reply<'a, ()> {
        self.serve(self.core.deregister_worker(worker, instance))
    }
}

impl Control for Coordinator {
    fn submit(&self, submission: Submission) -> Reply<'_, RunView> {
        self.serve(async move {
            if is_pipeline(&submission) {
                let name = self.core.submit_pipeline(submission).await?;
                return self.core.pipeline_view(&name).await;
            }
            let proposal = self.core.propose(submission).await?;
            self.begin(&proposal).await
        })
    }

    fn runs(&self) -> Reply<'_, Vec<RunView>> {
        self.serve(async move {
            let mut views = self.core.views().await?;
            views.extend(self.core.pipeline_views().await?);
            Ok(views)
        })
    }

    fn run<'a>(&'a self, run: &'a RunId) -> Reply<'a, RunView> {
        self.serve(async move {
            if self.core.is_pipeline(run).await? {
                return self.core.pipeline_view(run).await;
            }
            let known = match self.core.known(run).await {
                Ok(run) => run,
                Err(error) => return self.core.view_of_broken(run, error).await,
            };
            // Records come to other coordinators, too: what one of them has shown, the next one shows. Where they cannot be
            // read now, a run that goes on is shown as it was last seen, with its trouble.
            let run = match self.core.followed(run).await {
                Err(error) if error.code != ErrorCode::NotFound && !known.phase().is_over() => known,
                followed => followed?,
            };
            Ok(self.core.view(&run, Detail::Full).await)
        })
    }

    fn watch<'a>(&'a self, run: &'a RunId) -> Feed<'a, RunView> {
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

    fn command<'a>(&'a self, run: &'a RunId, command: RunCommand) -> Reply<'a, RunView> {
        self.serve(async move {
            if self.core.is_pipeline(run).await? {
                self.core.command_pipeline(run, command).await?;
                return self.core.pipeline_view(run).await;
            }
            let run = self.core.command_run(run, command).await?;
            Ok(self.core.view(&run, Detail::Full).await)
        })
    }

    fn retry<'a>(&'a self, run: &'a RunId, causes: &'a [FailureCause]) -> Reply<'a, u64> {
        self.serve(async move {
            match self.core.is_pipeline(run).await? {
                true => self.core.retry_pipeline(run, causes).await,
                false => self.core.retry_run(run, causes).await,
            }
        })
    }

    fn remove<'a>(&'a self, run: &'a RunId, force: bool) -> Reply<'a, ()> {
        self.serve(async move {
            match self.core.is_pipeline(run).await? {
                true => self.core.remove_pipeline(run, force).await,
                false => self.core.remove_run(run, force).await,
            }
        })
    }

    fn records<'a>(&'a self, run: &'a RunId) -> Feed<'a, ExportItem> {
        Box::pin(stream::once(self.core.is_no_pipeline(run)).flat_map(move |checked| match checked {
            Ok(()) => self.core.export(run),
            Err(error) => Box::pin(stream::once(std::future::ready(Err(error)))) as Feed<'a, ExportItem>,
        }))
    }

    fn workers(&self) -> Reply<'_, Vec<WorkerView>> {
        Box::pin(self.core.worker_views())
    }

    fn drain_worker<'a>(&'a self, worker: &'a WorkerId) -> Reply<'a, ()> {
        self.serve(self.core.drain(worker))
    }

    fn dead_letters<'a>(&'a self, run: &'a RunId, unit: Option<u64>) -> Reply<'a, Vec<DeadLetterView>> {
        self.serve(self.core.dead(run, unit))
    }

    fn requeue<'a>(&'a self, run: &'a RunId, units: &'a [u64]) -> Reply<'a, u64> {
        self.serve(self.core.requeue_units(run, units))
    }

    fn check(&self) -> Reply<'_, Vec<String>> {
        Box::pin(self.core.check_all())
    }
}

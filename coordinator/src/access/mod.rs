//! A coordinator on behalf of one caller: it enforces names and read permissions, and records every command in the history
//! of its run.
//!
//! The server decides which calls a role may make; this module decides what a call may do for its caller.

mod limits;
mod redact;

use std::sync::Arc;
use std::time::Duration;

use domain::caller::{Caller, CallerRole};
use domain::control::{
    BenchmarkCommand, BenchmarkView, Control, DeadLetterView, ExportItem, Feed, HistoryEntry, Submission,
    WorkerView,
};
use domain::exchange::{
    Delivery, Orders, RateBudget, Receipt, Registered, Registration, Reply, Report, RunMaterial, WorkExchange,
};
use domain::{DialogueKey, ErrorCode, FailureCause, InstanceId, RunId, ServiceError, WorkerId};
use futures::StreamExt;
use jiff::Timestamp;
use results::export::jsonl;

use crate::coordinator::Coordinator;
use crate::errors::{Result, invalid};
use crate::views::dialogues::RecordView;

pub(crate) use limits::Submissions;
#[cfg(test)]
pub(crate) use redact::item as redacted;

/// Leases, offers and parkings of one report, each. A worker holds some hundred leases.
pub const ITEMS_PER_REPORT_MAX: usize = 20_000;

/// Longest name of a worker in bytes.
pub const WORKER_NAME_BYTES_MAX: usize = 256;

/// A coordinator on behalf of a caller.
pub struct Access {
    coordinator: Arc<Coordinator>,
    caller: Caller,
}

impl Access {
    /// What this caller may do.
    pub fn of(coordinator: &Arc<Coordinator>, caller: &Caller) -> Arc<Self> {
        Arc::new(Self { coordinator: Arc::clone(coordinator), caller: caller.clone() })
    }

    fn denied(&self, what: &str) -> ServiceError {
        let message = format!("`{}` {what}", self.caller.name());
        tracing::warn!(caller = self.caller.name(), what, "refused");
        ServiceError::new(ErrorCode::Denied, message)
    }

    /// Whether the caller may act as this worker.
    fn own(&self, worker: &WorkerId) -> Result<()> {
        if worker.as_str().len() > WORKER_NAME_BYTES_MAX {
            return Err(invalid(format!("a worker's name may have {WORKER_NAME_BYTES_MAX} bytes")));
        }
        if self.caller.may_be(worker) {
            return Ok(());
        }
        Err(self.denied(&format!("may not act as worker `{worker}`")))
    }

    /// Notes what was done to a run. It was done: a history that cannot be written now is told in the log only.
    async fn note(&self, run: &RunId, what: String) {
        let who = self.caller.name().to_owned();
        tracing::info!(%run, who, what, "history");
        let entry = HistoryEntry { at: Timestamp::now(), who, what };
        if let Err(error) = self.coordinator.note_history(run, &entry).await {
            tracing::warn!(%run, %error, "the history of the run cannot be written");
        }
    }

    /// The record that counts for a dialogue; `None` if there is none yet. Texts of protected exercises are redacted for
    /// whoever is no operator.
    ///
    /// # Errors
    /// There is no such run or dialogue, or the log cannot be read.
    pub async fn record(&self, run: &RunId, key: &DialogueKey) -> Result<Option<RecordView>> {
        let found = self.coordinator.record_of(run, key).await?;
        Ok(found.map(|(protected, mut record)| {
            let redacted = protected && !self.caller.has(CallerRole::Operator);
            if redacted {
                jsonl::redact(&mut record);
            }
            RecordView { record, redacted }
        }))
    }

    /// A run with its history as it is after something was noted.
    async fn noted(&self, mut view: BenchmarkView, what: &str) -> BenchmarkView {
        self.note(&view.run, what.to_owned()).await;
        view.history = self.coordinator.history_now(&view.run).await.unwrap_or_default();
        view
    }
}

#[async_trait::async_trait]
impl WorkExchange for Access {
    async fn register(&self, registration: Registration) -> Reply<Registered> {
        self.own(&registration.worker)?;
        self.coordinator.register(registration).await
    }

    async fn exchange(&self, report: Report) -> Reply<Orders> {
        self.own(&report.worker)?;
        let lists = [report.offers.len(), report.held.len(), report.ended.len(), report.parked.len()];
        if let Some(most) = lists.into_iter().find(|items| *items > ITEMS_PER_REPORT_MAX) {
            return Err(invalid(format!("a report names {most} things; {ITEMS_PER_REPORT_MAX} may be")));
        }
        self.coordinator.exchange(report).await
    }

    async fn deliver(&self, deliveries: Vec<Delivery>) -> Reply<Vec<Receipt>> {
        self.coordinator.deliver_as(deliveries, &self.caller).await
    }

    async fn run_material(&self, run: &RunId) -> Reply<RunMaterial> {
        self.coordinator.run_material(run).await
    }

    async fn pack(&self, hash: &str) -> Reply<Arc<[u8]>> {
        let reads_all = self.caller.has(CallerRole::Worker) || self.caller.has(CallerRole::Operator);
        if !reads_all && self.coordinator.packs.of_hash(hash, hash).await?.header().protected {
            return Err(self.denied(&format!("may not read the protected pack {hash}")));
        }
        self.coordinator.pack(hash).await
    }

    async fn take_rate(&self, budget: &RateBudget, permits: u32) -> Reply<Option<Duration>> {
        self.coordinator.take_rate(budget, permits).await
    }

    async fn deregister(&self, worker: &WorkerId, instance: &InstanceId) -> Reply<()> {
        self.own(worker)?;
        self.coordinator.deregister(worker, instance).await
    }
}

#[async_trait::async_trait]
impl Control for Access {
    async fn submit(&self, submission: Submission) -> Reply<BenchmarkView> {
        self.coordinator.submissions.take(self.caller.name(), self.coordinator.clock.now())?;
        let view = self.coordinator.submit(submission).await?;
        Ok(self.noted(view, "submitted").await)
    }

    async fn extend(&self, run: &RunId, submission: Submission) -> Reply<BenchmarkView> {
        self.coordinator.submissions.take(self.caller.name(), self.coordinator.clock.now())?;
        let view = self.coordinator.extend(run, submission).await?;
        Ok(self.noted(view, "extended").await)
    }

    async fn runs(&self) -> Reply<Vec<BenchmarkView>> {
        self.coordinator.runs().await
    }

    async fn run(&self, run: &RunId) -> Reply<BenchmarkView> {
        self.coordinator.run(run).await
    }

    fn watch<'a>(&'a self, run: &'a RunId) -> Feed<'a, BenchmarkView> {
        self.coordinator.watch(run)
    }

    async fn command(&self, run: &RunId, command: BenchmarkCommand) -> Reply<BenchmarkView> {
        let view = self.coordinator.command(run, command).await?;
        let what = match command {
            BenchmarkCommand::Pause => "paused",
            BenchmarkCommand::Resume => "resumed",
            BenchmarkCommand::Cancel => "cancelled",
        };
        Ok(self.noted(view, what).await)
    }

    async fn retry(&self, run: &RunId, causes: &[FailureCause]) -> Reply<u64> {
        let dialogues = self.coordinator.retry(run, causes).await?;
        self.note(run, format!("retried {dialogues} dialogues")).await;
        Ok(dialogues)
    }

    async fn remove(&self, run: &RunId, force: bool) -> Reply<()> {
        // The history goes with the run; who removed it stands in the log.
        tracing::info!(%run, who = self.caller.name(), force, "removing");
        self.coordinator.remove(run, force).await
    }

    fn records<'a>(&'a self, run: &'a RunId) -> Feed<'a, ExportItem> {
        let all = self.coordinator.records(run);
        if self.caller.has(CallerRole::Operator) {
            return all;
        }
        let mut protected = false;
        Box::pin(all.map(move |item| redact::item(item?, &mut protected)))
    }

    async fn workers(&self) -> Reply<Vec<WorkerView>> {
        self.coordinator.workers().await
    }

    async fn drain_worker(&self, worker: &WorkerId) -> Reply<()> {
        self.coordinator.drain_worker(worker).await?;
        for run in self.coordinator.runs.live() {
            self.note(run.id(), format!("drained worker {worker}")).await;
        }
        Ok(())
    }

    async fn dead_letters(&self, run: &RunId, unit: Option<u64>) -> Reply<Vec<DeadLetterView>> {
        self.coordinator.dead_letters(run, unit).await
    }

    async fn requeue(&self, run: &RunId, units: &[u64]) -> Reply<u64> {
        let requeued = self.coordinator.requeue(run, units).await?;
        self.note(run, format!("gave {requeued} units another chance")).await;
        Ok(requeued)
    }

    async fn check(&self) -> Reply<Vec<String>> {
        self.coordinator.check().await
    }
}

//! The only way into a coordinator: what a caller may do with its parts.
//!
//! The server decides which calls a role may make; this module decides what a call may do for its caller: it enforces names
//! and read permissions, bounds what is asked for, notes what is about to be done or read in the audit log, and records every
//! command in the history of its run.
//!
//! `work` is for workers, `control` for people, `readings` for pages and reports, `local` for the process of a local run.

mod audited;
mod control;
mod limits;
mod local;
mod readings;
mod redact;
mod work;

use std::any::Any;
use std::sync::Arc;

use domain::caller::{Caller, CallerRole};
use domain::control::{BenchmarkView, HistoryEntry, Submission};
use domain::{ErrorCode, RunId, ServiceError, WorkerId, machine};

use crate::audit::AuditLog;
use crate::benchmarks::Benchmarks;
use crate::errors::{Result, invalid, of_queue};
use crate::fleet::Fleet;
use crate::health::{Health, Uptime};
use crate::queue::client::QueueClient;
use crate::records::loaded::LoadedRuns;
use crate::records::packs::Packs;
use crate::records::store::Store;
use crate::runs::Runs;
use crate::views::Views;
use crate::views::run::Unredacted;

pub(crate) use limits::Submissions;
#[cfg(test)]
pub(crate) use redact::item as redacted;

/// Leases, offers and parkings of one report, each. A worker holds some hundred leases.
pub const ITEMS_PER_REPORT_MAX: usize = 20_000;

/// Longest name of a worker in bytes.
pub const WORKER_NAME_BYTES_MAX: usize = 256;

/// The parts of a coordinator that callers use.
pub(crate) struct CoordinatorParts {
    pub clock: Uptime,
    pub health: Arc<Health>,
    pub store: Arc<Store>,
    pub packs: Arc<Packs>,
    pub loaded: Arc<LoadedRuns>,
    pub queue: Arc<QueueClient>,
    pub runs: Arc<Runs>,
    pub benchmarks: Arc<Benchmarks>,
    pub fleet: Arc<Fleet>,
    pub views: Arc<Views>,
    pub submissions: Submissions,
    pub audit: AuditLog,
}

/// A coordinator on behalf of a caller.
pub struct Access {
    parts: Arc<CoordinatorParts>,
    caller: Caller,
    /// Whether submissions are bounded, and commands noted in histories.
    is_noted: bool,
    /// Where what the caller does is noted first.
    audit: AuditLog,
    /// Keeps the rounds of the coordinator going as long as somebody has access.
    _rounds: Arc<dyn Any + Send + Sync>,
}

impl Access {
    /// What this caller may do. `rounds` go on as long as it has access.
    pub(crate) fn named(
        parts: &Arc<CoordinatorParts>,
        rounds: Arc<dyn Any + Send + Sync>,
        caller: &Caller,
    ) -> Arc<Self> {
        let (parts, caller) = (Arc::clone(parts), caller.clone());
        let audit = parts.audit.clone();
        Arc::new(Self { parts, caller, is_noted: true, audit, _rounds: rounds })
    }

    /// What the process itself may do for its only user.
    pub(crate) fn unnamed(parts: &Arc<CoordinatorParts>, rounds: Arc<dyn Any + Send + Sync>) -> Arc<Self> {
        let (parts, caller) = (Arc::clone(parts), Caller::anyone());
        Arc::new(Self { parts, caller, is_noted: false, audit: AuditLog::none(), _rounds: rounds })
    }

    /// What everybody of this role sees, for a cache: who is shown it is noted by [`Self::shows_to_caller`].
    pub(crate) fn of_many(
        parts: &Arc<CoordinatorParts>,
        rounds: Arc<dyn Any + Send + Sync>,
        role: CallerRole,
    ) -> Arc<Self> {
        let (parts, caller) = (Arc::clone(parts), Caller::new("many", [role], None));
        Arc::new(Self { parts, caller, is_noted: true, audit: AuditLog::none(), _rounds: rounds })
    }

    fn denied(&self, what: &str) -> ServiceError {
        let message = format!("`{}` {what}", self.caller.name());
        self.was_refused(what);
        ServiceError::new(ErrorCode::Denied, message)
    }

    /// Whether calls may be served: not if another coordinator leads, or queue and sink do not belong together.
    fn serves(&self) -> Result<()> {
        self.parts.queue.raw().leads().map_err(|error| of_queue(&error))?;
        self.parts.health.serves()
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

    /// The identity whose share of places a worker takes; empty where nobody is known by name.
    fn identity(&self) -> &str {
        let name = self.caller.name();
        if name == Caller::ANYONE { "" } else { name }
    }

    /// A view as this caller may see it.
    async fn shown(&self, view: Unredacted) -> Result<BenchmarkView> {
        self.shown_to(view, &mut false).await
    }

    /// The same for one of several views that are a single look. `looks` says whether that is noted.
    async fn shown_to(
        &self,
        Unredacted { mut view, protected }: Unredacted,
        looks: &mut bool,
    ) -> Result<BenchmarkView> {
        if !protected {
            return Ok(view);
        }
        if !self.caller.has(CallerRole::Operator) {
            redact::view(&mut view);
        } else if !*looks && redact::has_words(&view) {
            self.reads(&view.run).await?;
            *looks = true;
        }
        Ok(view)
    }

    /// Counts a submission, if another one is allowed now.
    fn take_submission(&self) -> Result<()> {
        match self.is_noted {
            true => self.parts.submissions.take(self.caller.name(), self.parts.clock.now()),
            false => Ok(()),
        }
    }

    /// Whether the caller's benchmarks may have the dialogues of this submission too. Who submits at two coordinators in the same
    /// moment may exceed the bound by one submission.
    async fn expect_room(&self, submission: &Submission, extended: Option<&RunId>) -> Result<()> {
        let Some(bound) = self.caller.open_dialogues() else { return Ok(()) };
        let more = match extended {
            None => self.parts.benchmarks.size_of_new(submission.clone()).await?,
            Some(name) => {
                let planned = self.parts.views.view(name).await?.view.planned;
                self.parts.benchmarks.size_of(submission.clone()).await?.saturating_sub(planned)
            }
        };
        let all = self.parts.views.list().await?;
        let own = all.iter().map(|unredacted| &unredacted.view);
        let own = own.filter(|view| view.submitter == self.caller.name() && !view.phase.is_over());
        let open: u64 = own.map(|view| view.planned.saturating_sub(view.done())).sum();
        limits::expect_open(self.caller.name(), bound, open, more)
    }

    /// Notes what was done to a run. It was done: a history that cannot be written now is told in the log only.
    async fn note(&self, run: &RunId, what: String) {
        if !self.is_noted {
            return;
        }
        let who = self.caller.name().to_owned();
        tracing::info!(%run, who, what, "history");
        let entry = HistoryEntry { at: machine::now(), who, what };
        if let Err(error) = self.parts.views.note_history(run, &entry).await {
            tracing::warn!(%run, %error, "the history of the run cannot be written");
        }
    }

    /// What has this name, after what was done to it is noted.
    async fn noted(&self, name: &RunId, what: &str) -> Result<BenchmarkView> {
        let mut seen = self.parts.views.view(name).await?;
        if self.is_noted {
            self.note(name, what.to_owned()).await;
            seen.view.history = self.parts.benchmarks.history(name).await.unwrap_or_default();
        }
        self.shown(seen).await
    }
}

//! The coordinator: wires its parts together, starts and ends them.
//!
//! Locks are taken in one order: the turn to look after benchmarks, the snapshot of the backlog, a run's `filling`, its
//! `joining`, its `tail`. A run's `log` and `history` are taken alone. Plain values behind a standard mutex are never held over
//! an await, and [`WorkSignal::touch`] takes no lock of these.

use std::sync::Arc;

use domain::ServiceError;
use domain::caller::{Caller, CallerRole};
use queue::QueueStore;
use results::Sink;

use crate::access::{Access, CoordinatorParts, Submissions};
use crate::audit::AuditLog;
use crate::benchmarks::Benchmarks;
use crate::benchmarks::attended::Attended;
use crate::benchmarks::caps::Caps;
use crate::fleet::Fleet;
use crate::health::{Health, Uptime};
use crate::options::{Adopt, CoordinatorOptions};
use crate::queue::client::QueueClient;
use crate::queue::fence::StoreFence;
use crate::queue::measured::Measured;
use crate::queue::signal::WorkSignal;
use crate::queue_owner::Ownership;
use crate::records::loaded::LoadedRuns;
use crate::records::named_models::NamedModels;
use crate::records::packs::Packs;
use crate::records::store::Store;
use crate::runs::Runs;
use crate::runs::commit::RecordLogs;
use crate::tending::{self, RoundMemory, Tending};
use crate::views::Views;

/// A coordinator over a queue and a sink. Any number of coordinators may share them; none has state that another one could
/// not rebuild.
pub struct Coordinator {
    parts: Arc<CoordinatorParts>,
    ownership: Arc<Ownership>,
    tending: Arc<Tending>,
}

impl Coordinator {
    /// Starts a coordinator. Needs a Tokio runtime; it ends when dropped.
    pub fn start(options: CoordinatorOptions, queue: Arc<dyn QueueStore>, sink: Sink) -> Arc<Self> {
        Self::start_noting(options, queue, sink, AuditLog::none())
    }

    /// The same, with a log of who did what.
    pub fn start_noting(
        options: CoordinatorOptions,
        queue: Arc<dyn QueueStore>,
        sink: Sink,
        audit: AuditLog,
    ) -> Arc<Self> {
        let (clock, health) = (Uptime::start(), Arc::new(Health::default()));
        let store = Arc::new(Store::new(sink, options.scope));
        queue.set_fence(Arc::new(StoreFence::new(Arc::clone(&store))));
        let queue: Arc<dyn QueueStore> =
            if service_kit::metrics::is_collecting() { Arc::new(Measured(queue)) } else { queue };
        let packs = Arc::new(Packs::new(Arc::clone(&store)));
        let loaded = Arc::new(LoadedRuns::new(Arc::clone(&store), Arc::clone(&packs), clock));
        let signal = Arc::new(WorkSignal::default());
        let queue = Arc::new(QueueClient::new(
            options.clone(),
            queue,
            Arc::clone(&store),
            Arc::clone(&loaded),
            Arc::clone(&signal),
            Arc::clone(&health),
        ));
        let logs = Arc::new(RecordLogs::new(
            Arc::clone(&queue),
            Arc::clone(&store),
            Arc::clone(&loaded),
            Arc::clone(&health),
            clock,
        ));
        let runs = Arc::new(Runs {
            health: Arc::clone(&health),
            store: Arc::clone(&store),
            packs: Arc::clone(&packs),
            loaded: Arc::clone(&loaded),
            queue: Arc::clone(&queue),
            signal: Arc::clone(&signal),
            logs,
            removing: tokio::sync::Mutex::default(),
        });
        let named = Arc::new(NamedModels::default());
        let benchmarks = Arc::new(Benchmarks {
            health: Arc::clone(&health),
            store: Arc::clone(&store),
            packs: Arc::clone(&packs),
            loaded: Arc::clone(&loaded),
            runs: Arc::clone(&runs),
            attended: Attended::default(),
            caps: Caps::new(&options, Arc::clone(&loaded)),
            named: Arc::clone(&named),
            telling: tokio::sync::Mutex::default(),
            submitting: tokio::sync::Mutex::default(),
        });
        let fleet = Arc::new(Fleet::new(
            options.clone(),
            clock,
            Arc::clone(&health),
            Arc::clone(&loaded),
            Arc::clone(&queue),
            Arc::clone(&signal),
            Arc::clone(&benchmarks),
        ));
        let views = Arc::new(Views::new(
            options.clone(),
            clock,
            Arc::clone(&health),
            Arc::clone(&store),
            Arc::clone(&loaded),
            Arc::clone(&queue),
            Arc::clone(&benchmarks),
            Arc::clone(&fleet),
        ));
        let ownership = Arc::new(Ownership::new(Arc::clone(&store), Arc::clone(&queue), Arc::clone(&health)));
        let tending = Arc::new(Tending {
            memory: RoundMemory::new(&options, clock.now()),
            options,
            clock,
            health: Arc::clone(&health),
            store: Arc::clone(&store),
            loaded: Arc::clone(&loaded),
            queue: Arc::clone(&queue),
            signal,
            runs: Arc::clone(&runs),
            benchmarks: Arc::clone(&benchmarks),
            views: Arc::clone(&views),
            ownership: Arc::clone(&ownership),
            named,
        });
        if tending.options.tends {
            tokio::spawn(tending::rounds(Arc::downgrade(&tending), tending.options.tend_every));
        }
        let submissions = Submissions::default();
        let parts = Arc::new(CoordinatorParts {
            clock,
            health,
            store,
            packs,
            loaded,
            queue,
            runs,
            benchmarks,
            fleet,
            views,
            submissions,
            audit,
        });
        Arc::new(Self { parts, ownership, tending })
    }

    /// What this caller may do. Its commands are noted in the history of what they change.
    pub fn access(&self, caller: &Caller) -> Arc<Access> {
        Access::named(&self.parts, Arc::clone(&self.tending) as _, caller)
    }

    /// What everybody of this role sees. Whoever shows it to somebody notes who that is, with
    /// [`Access::shows_to_caller`].
    pub fn view_for_many(&self, role: CallerRole) -> Arc<Access> {
        Access::of_many(&self.parts, Arc::clone(&self.tending) as _, role)
    }

    /// The log of who did what.
    pub fn audit(&self) -> &AuditLog {
        &self.parts.audit
    }

    /// What this process may do for its only user. Nothing is noted.
    pub fn unnamed(&self) -> Arc<Access> {
        Access::unnamed(&self.parts, Arc::clone(&self.tending) as _)
    }

    /// What it is made of.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> &CoordinatorParts {
        &self.parts
    }

    /// Checks that the queue belongs to this sink and the sink to this queue, and binds them if they belong to none, or as
    /// `adopt` says. Call it before serving; afterwards it is checked periodically.
    ///
    /// # Errors
    /// One of them belongs to another, see the message; queue or sink cannot be reached.
    pub async fn bind(&self, adopt: Adopt) -> Result<(), ServiceError> {
        self.ownership.check(adopt).await
    }

    /// Whether it can work now.
    ///
    /// # Errors
    /// Why not: the queue cannot be reached, the sink cannot be written, runs are still being loaded.
    pub fn ready(&self) -> Result<(), ServiceError> {
        self.tending.fitness()
    }

    /// Why records cannot be stored, if so.
    pub fn sink_trouble(&self) -> Option<String> {
        self.parts.health.sink_trouble()
    }

    /// Announces the shutdown: calls that wait for work return without any, so that workers go to another coordinator.
    pub fn close(&self) {
        self.parts.fleet.close();
    }

    /// Closes the record logs before the process ends, so that a power cut afterwards loses nothing.
    pub async fn close_logs(&self) {
        self.parts.runs.logs.close_logs().await;
    }

    /// Tends all runs once. This happens periodically if [`CoordinatorOptions::tends`] is set.
    ///
    /// # Errors
    /// The queue cannot be reached.
    pub async fn tend(&self) -> Result<(), ServiceError> {
        self.tending.round().await
    }
}

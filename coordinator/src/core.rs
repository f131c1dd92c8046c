//! What all parts of a coordinator share, and how they call the queue.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::{ErrorCode, RunId, ServiceError};
use futures::future::BoxFuture;
use queue::{QueueStore, RunRef};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::access::Submissions;
use crate::backlog::Backlog;
use crate::commit::{BYTES_PER_PERMIT, RecentRecords};
use crate::config::{CoordinatorConfig, MAX_BYTES_IN_FLIGHT, Scope};
use crate::errors::{Result, is_out_of_step, of_queue};
use crate::pack_store::PackStore;
use crate::patience::Patience;
use crate::pipeline::Pipelines;
use crate::run::Run;
use crate::runs::Runs;
use crate::storage::Storage;

/// What all parts of a coordinator share.
pub(crate) struct Core {
    pub config: CoordinatorConfig,
    pub queue: Arc<dyn QueueStore>,
    pub storage: Storage,
    pub runs: Runs,
    pub packs: PackStore,
    pub pipelines: Pipelines,
    pub backlog: Backlog,
    pub patience: Mutex<Patience>,
    pub health: Health,
    /// Room for records on their way to the log, in units of [`BYTES_PER_PERMIT`].
    pub room: Arc<Semaphore>,
    pub recent: Mutex<RecentRecords>,
    pub submissions: Submissions,
    /// Whether it is ending: nobody waits for work here any more.
    pub closing: AtomicBool,
    /// The identity of the place of records, once the queue is known to belong to it.
    bond: Mutex<Option<String>>,
    started: Instant,
}

/// What keeps a coordinator from doing its work, as last seen.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// That the queue belongs to another place of records.
    unbound: Mutex<Option<String>>,
    queue: Mutex<Option<String>>,
    sink: Mutex<Option<String>>,
    tended: Mutex<bool>,
}

impl Core {
    pub(crate) fn new(config: CoordinatorConfig, queue: Arc<dyn QueueStore>, storage: Storage) -> Self {
        Self {
            config,
            queue,
            storage,
            runs: Runs::default(),
            packs: PackStore::default(),
            pipelines: Pipelines::default(),
            backlog: Backlog::default(),
            patience: Mutex::default(),
            health: Health::default(),
            room: Arc::new(Semaphore::new(MAX_BYTES_IN_FLIGHT / BYTES_PER_PERMIT)),
            recent: Mutex::default(),
            submissions: Submissions::default(),
            closing: AtomicBool::new(false),
            bond: Mutex::default(),
            started: Instant::now(),
        }
    }

    /// Time since this coordinator began.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn bond(&self) -> Option<String> {
        get(&self.bond)
    }

    pub(crate) fn set_bond(&self, here: String) {
        set(&self.bond, Some(here));
    }

    /// Whether anything may be said about runs here: not where the records are not those of the queue.
    pub(crate) fn serves(&self) -> Result<()> {
        match get(&self.health.unbound) {
            Some(message) => Err(ServiceError::new(ErrorCode::Unavailable, message)),
            None => Ok(()),
        }
    }

    /// Whether other coordinators may write the same runs.
    pub(crate) fn is_shared(&self) -> bool {
        self.config.scope == Scope::Fleet
    }

    /// The building of a run's queue; joined, or built, where it is not known.
    pub(crate) async fn at(&self, run: &Arc<Run>) -> Result<RunRef> {
        match run.at() {
            Some(at) => Ok(at),
            None => self.join(run, None).await,
        }
    }

    /// Calls the queue for a run. Where the queue has lost the run, or somebody has rebuilt it, both are brought into
    /// step first, and the call is made once more.
    pub(crate) async fn on_queue<'c, T>(
        &self,
        run: &Arc<Run>,
        call: impl Fn(RunRef) -> BoxFuture<'c, queue::Result<T>> + Send + Sync,
    ) -> Result<T> {
        let at = self.at(run).await?;
        let generation = at.generation;
        match call(at).await {
            Err(error) if is_out_of_step(&error) => {
                tracing::warn!(run = %run.id(), %error, "bringing the queue into step");
                let at = self.join(run, Some(generation)).await?;
                self.note_queue(call(at).await)
            }
            result => self.note_queue(result),
        }
    }

    /// Takes note of how the queue is, and puts its error into the words of a service.
    pub(crate) fn note_queue<T>(&self, result: queue::Result<T>) -> Result<T> {
        let trouble = match &result {
            Err(
                error @ (queue::Error::Unavailable { .. }
                | queue::Error::Full { .. }
                | queue::Error::Unfit { .. }
                | queue::Error::Corrupt { .. }),
            ) => Some(of_queue(error).message),
            _ => None,
        };
        set(&self.health.queue, trouble);
        result.map_err(|error| of_queue(&error))
    }

    /// What came of one run's part of something that is done for several runs: `None` where it failed for a reason that
    /// the others need not share.
    ///
    /// # Errors
    /// The queue as a whole is in trouble: what is to be done for the others would fail as well.
    pub(crate) fn apart<T>(&self, run: &RunId, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.code.is_transient() && get(&self.health.queue).is_some() => Err(error),
            Err(error) => {
                // Whoever looks after the run tells of it and shows it.
                tracing::debug!(%run, %error, "left out");
                Ok(None)
            }
        }
    }

    /// Takes note of how the sink is.
    pub(crate) fn note_sink<T>(&self, result: Result<T>) -> Result<T> {
        set(&self.health.sink, result.as_ref().err().map(|error| error.message.clone()));
        result
    }
}

impl Health {
    /// What is wrong with the sink or the queue.
    pub(crate) fn trouble(&self) -> Option<String> {
        get(&self.unbound).or_else(|| get(&self.sink)).or_else(|| get(&self.queue))
    }

    /// What is wrong with the sink.
    pub(crate) fn sink_trouble(&self) -> Option<String> {
        get(&self.sink)
    }

    pub(crate) fn set_unbound(&self, trouble: Option<String>) {
        set(&self.unbound, trouble);
    }

    /// Takes note that every run was looked after once.
    pub(crate) fn set_tended(&self) {
        *self.tended.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Whether every run was looked after once.
    pub(crate) fn is_tended(&self) -> bool {
        *self.tended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn set(place: &Mutex<Option<String>>, value: Option<String>) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = value;
}

fn get(place: &Mutex<Option<String>>) -> Option<String> {
    place.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

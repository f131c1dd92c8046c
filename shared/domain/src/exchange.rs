//! The interface between workers and coordinators.
//!
//! A worker reports its *whole* state, and the answer contains everything that concerns it. So a lost answer loses
//! nothing: the next one contains it again. Two types implement the trait: a coordinator in the same process, for
//! `kgfleet run`, and a client over gRPC.
//!
//! Workers call coordinators; a coordinator never calls a worker. A call is added here, in `proto/` (message,
//! conversion, client, server) and in `coordinator/src/fleet/`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::error::ServiceError;
use crate::ids::{DialogueKey, InstanceId, Iteration, ModelLabel, RunId, TaskLabel, WorkerId};
use crate::model::ModelSpec;
use crate::outcome::FailureCause;
use crate::provenance::About;
use crate::provider::Connector;
use crate::reach::Reach;
use crate::record::Record;

/// Maximum number of dialogues in a unit. Coordinators cut plans by it, and workers ask for work in multiples of it.
pub const UNIT_DIALOGUES_MAX: u32 = 10;

/// What stands in place of a name where a server tells no names: it may answer for any model that configurations reach by
/// name and that no other server lists.
pub const ANY_MODEL: &str = "*";

/// What all calls answer.
pub type Reply<T> = Result<T, ServiceError>;

/// A coordinator as its workers see it.
///
/// Every call may be repeated after a transient error; each method says what a repetition does.
#[async_trait::async_trait]
pub trait WorkExchange: Send + Sync + 'static {
    /// Registers a worker. A worker that registers holds nothing yet: units still leased under its name belonged to a
    /// process that died, and that death counts against them. Repetition: the same.
    async fn register(&self, registration: Registration) -> Reply<Registered>;

    /// Records a worker's state, renews its leases and answers with orders. If the report offers room and there is no
    /// work, the answer waits for up to [`Report::wait`]. Repetition: the same; grants of a lost answer are sent
    /// again.
    async fn exchange(&self, report: Report) -> Reply<Orders>;

    /// Stores records. The answer comes when they are durable and committed to the queue, with one receipt per
    /// record, in order. Callers send at most 1000 records and 1 MiB, or one longer record. A line to another machine answers in
    /// bounded time, so callers need not give up. Repetition: stored again at most, and counted once.
    async fn deliver(&self, deliveries: Vec<Delivery>) -> Reply<Vec<Receipt>>;

    /// What a worker needs to know of a run.
    async fn run_material(&self, run: &RunId) -> Reply<RunMaterial>;

    /// A pack as a sealed file, by the hash of its manifest (hexadecimal SHA-256).
    async fn pack(&self, hash: &str) -> Reply<Arc<[u8]>>;

    /// Takes permits of a rate budget that all workers share: `None` if they are granted, otherwise how long to wait
    /// before asking again. Repetition: takes more permits.
    async fn take_rate(&self, budget: &RateBudget, permits: u32) -> Reply<Option<Duration>>;

    /// Signs off a worker that holds nothing any more, and says why it ends. Repetition: harmless.
    async fn deregister(&self, worker: &WorkerId, instance: &InstanceId, why: Option<Departure>)
    -> Reply<()>;
}

/// A worker's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its name, unique in the fleet.
    pub worker: WorkerId,
    /// This process; empty if the worker does not say.
    pub instance: InstanceId,
    /// Earlier processes of this worker that have ended, known because this process holds their spool: it takes over
    /// their name.
    pub predecessors: Vec<InstanceId>,
    /// Version of its kgfleet.
    pub kgfleet: String,
    /// Where it runs, for people.
    pub host: String,
}

/// The answer to a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Version of the coordinator's kgfleet.
    pub kgfleet: String,
    /// A worker reports at least this often, and is considered dead after several times as long.
    pub report_every: Duration,
    /// Set if the worker was not registered because another process has its name.
    pub taken: Option<NameTaken>,
}

/// Another process holds the worker's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTaken {
    /// The process.
    pub instance: InstanceId,
    pub host: String,
    /// Time since its last report.
    pub silent_for: Duration,
    /// Time until the name is free, if that process stays silent.
    pub free_in: Duration,
}

impl std::fmt::Display for NameTaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { instance, host, silent_for, .. } = self;
        write!(
            f,
            "name in use by instance {instance} on host {host}, last heard {:.0} s ago",
            silent_for.as_secs_f64()
        )
    }
}

/// Identifies one lease: what the queue calls its fence, plus the run, because workers hold leases of several runs. It
/// is stale as soon as the unit changes hands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId {
    pub run: RunId,
    /// Generation of the run's queue when the lease was given.
    pub generation: u64,
    /// Model of the unit.
    pub model: ModelLabel,
    /// Number of the unit in its run, from 0.
    pub unit: u64,
    /// How many times the unit has been leased, including this one: from 1.
    pub attempt: u32,
}

/// How a lease ended for its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// All its records were acknowledged: the unit is done.
    Finished,
    /// The worker gives it back; this does not count against the unit.
    Released,
}

/// The whole state of a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub worker: WorkerId,
    /// Its process; empty if it does not say.
    pub instance: InstanceId,
    /// What it can ask, and how many more dialogues it could start.
    pub offers: Vec<Offer>,
    /// The leases that it works on; the coordinator renews them.
    pub held: Vec<LeaseId>,
    /// Leases that ended since the coordinator last noted any.
    pub ended: BTreeMap<LeaseId, LeaseEnd>,
    /// Models that cannot be asked for a while.
    pub parked: Vec<Parking>,
    /// Whether it is shutting down: it gets no more work.
    pub draining: bool,
    /// How long the answer may wait for work; zero for an immediate answer.
    pub wait: Duration,
    /// For people.
    pub status: WorkerStatus,
    /// Set if the worker ends when its models have no work left: it is told their outlook.
    pub until: Option<Until>,
}

/// What a worker waits for that ends when its models have no work left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Until {
    /// Models that its servers serve, or will serve once they are loaded, by name.
    pub expects: Vec<String>,
}

named! {
    /// What a worker's models have left, over all runs and judged benchmarks.
    pub enum Outlook {
        /// It cannot be said now.
        Unknown = "unknown",
        /// Something is left.
        Work = "work",
        /// What is left is held by other workers.
        Surplus = "surplus",
        /// What is left is paused, or its cap is reached.
        Held = "held",
        /// Nothing now, but there may be later: a judge's stage has not begun, or no run names the models yet.
        Later = "later",
        /// Nothing, ever, unless somebody asks for more.
        Done = "done",
    }
}

named! {
    /// Why a worker ends.
    pub enum Departure {
        /// Its models have no work left.
        Done = "done",
        /// Other workers hold what is left.
        Surplus = "surplus",
        /// What is left is paused, or its cap is reached.
        Held = "held",
        /// Its models have no work now.
        Later = "later",
        /// It was told to end.
        Drained = "drained",
        /// It cannot go on.
        Failed = "failed",
    }
}

impl Departure {
    /// The reason of this name; `None` for those of later versions.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.as_str() == name)
    }
}

/// Models that a worker can ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub serves: Serves,
    /// Dialogues that could start at once; 0 if it has enough.
    pub room: u32,
}

/// Which models a worker can ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Serves {
    /// A model, by the name that its server gives it, or [`ANY_MODEL`]: for models that configurations reach over the OpenAI API, or
    /// simulated ones, under this name.
    Model(String),
    /// Models that configurations reach by this connector at an address of their own.
    Connector(Connector),
}

/// A model that cannot be asked for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
    pub run: RunId,
    pub model: ModelLabel,
    pub parked_for: Duration,
    /// Why, for people.
    pub reason: String,
}

/// What a worker reports about itself, for people.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
pub struct WorkerStatus {
    /// Version of its kgfleet.
    pub kgfleet: String,
    pub host: String,
    /// What it serves, by name.
    pub serves: Vec<String>,
    /// Models that its servers must serve, by name, the first few; empty if it takes whatever they serve.
    pub expects: Vec<String>,
    /// Dialogues in flight.
    pub in_flight: u32,
    /// Most dialogues that it would hold at once.
    pub limit: u32,
    /// Dialogues ended since it started.
    pub dialogues: u64,
    /// Records not yet acknowledged by a coordinator.
    pub unacknowledged: u64,
    /// How many of these belong to runs that the coordinator does not know or cannot load; see [`Receipt::Later`].
    pub parked_records: u64,
    /// What keeps it from working, if anything does.
    pub trouble: Option<String>,
    /// What it may contact beyond its own servers; `None` if it does not say.
    pub reach: Option<Reach>,
    /// Configured keys that it could not load, each with the reason.
    pub lacks: Vec<String>,
    /// The protections of its sandbox.
    pub sandbox: Vec<String>,
    /// Models that it does not ask for a while, the first few: those of its own servers, and all others that it parked.
    pub not_asked: Vec<NotAsked>,
    /// The pool that it was started for; empty if none.
    pub pool: String,
    /// The machine of its server; empty if it does not say.
    pub node: String,
    /// GPUs of its server; 0 if it does not say.
    pub gpus: u32,
    /// What it is doing; `None` if it does not say.
    pub phase: Option<WorkerPhase>,
    /// Whole seconds since it began to do that.
    pub phase_s: u64,
    /// Whole seconds from its start until its first server answered; `None` until then.
    pub loaded_s: Option<u64>,
    /// The limits of its servers, the first few; those of one model are added up.
    pub limits: Vec<ModelLimit>,
    /// What it has under way, by run and model, the first few.
    pub calls: Vec<ModelCalls>,
}

/// What a worker has under way of a model of a run.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct ModelCalls {
    pub run: RunId,
    pub model: ModelLabel,
    pub calls: Calls,
}

/// The calls of a model that are under way, and those that wait.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
pub struct Calls {
    /// Dialogues in flight, without those whose calls wait.
    pub in_flight: u64,
    /// Calls that wait for their rate budget.
    pub waiting: u64,
    /// Calls that have failed and are made again, by what they met, the most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Retries>,
}

/// Calls that are made again for the same reason.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Retries {
    /// What they met, in a few words, none of them a server's.
    pub why: String,
    /// How many they are.
    pub calls: u64,
    /// When the first of them met it.
    pub since: Timestamp,
    /// The highest number of an attempt that is next; from 2.
    pub attempt: u32,
}

impl Calls {
    /// Different reasons that are told of a model; the others are rarer.
    pub const REASONS_MAX: usize = 4;

    /// Adds calls that are made again.
    pub fn add_retries(&mut self, more: Retries) {
        match self.retries.iter_mut().find(|known| known.why == more.why) {
            Some(known) => {
                known.calls += more.calls;
                known.since = known.since.min(more.since);
                known.attempt = known.attempt.max(more.attempt);
            }
            None => self.retries.push(more),
        }
    }

    /// Adds the calls of another worker or model.
    pub fn add(&mut self, more: &Self) {
        self.in_flight += more.in_flight;
        self.waiting += more.waiting;
        more.retries.iter().cloned().for_each(|retries| self.add_retries(retries));
        self.keep_most_frequent();
    }

    /// Sorts the reasons and keeps [`REASONS_MAX`](Self::REASONS_MAX).
    pub fn keep_most_frequent(&mut self) {
        self.retries.sort_by(|a, b| (b.calls, &a.why).cmp(&(a.calls, &b.why)));
        self.retries.truncate(Self::REASONS_MAX);
    }

    /// Whether everything that is under way has failed and waits for another attempt.
    pub fn all_fail(&self) -> bool {
        self.in_flight == 0 && !self.retries.is_empty()
    }
}

/// How many dialogues of a model a worker allows in flight now.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct ModelLimit {
    /// The name under which its servers know it.
    pub model: String,
    pub limit: u32,
    /// Why it is not higher, in the words of the metric of limits, once each.
    #[serde(default)]
    pub reasons: Vec<String>,
}

named! {
    /// What a worker is doing.
    pub enum WorkerPhase {
        /// No server of it has answered yet.
        Loading = "loading",
        /// Dialogues are in flight.
        Serving = "serving",
        /// It waits for work.
        Idle = "idle",
        /// It takes no more work and ends.
        Ending = "ending",
    }
}

/// A model of a run that a worker serves and does not ask further for a while.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct NotAsked {
    pub run: RunId,
    pub model: ModelLabel,
    /// Shortened.
    pub reason: String,
    /// Its first question is under way, whose calls have failed so far: the worker waits for its server.
    pub waits: bool,
}

/// Instructions for a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    pub grants: Vec<Grant>,
    /// Leases that it reported but no longer holds: it must stop their dialogues.
    pub lost: Vec<LeaseId>,
    /// Whether the reported ended leases and parkings were processed.
    pub noted: bool,
    /// It must finish the units it holds, or give them back, and end.
    pub drain: bool,
    /// Another process has taken over its name and leases: it must deliver its records and end.
    pub superseded: Option<NameTaken>,
    /// What its models have left; only for reports with [`Report::until`].
    pub outlook: Option<Outlook>,
}

/// A leased unit for a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub lease: LeaseId,
    /// Label of the task in the run.
    pub task: TaskLabel,
    /// The dialogues of the unit that have no record yet; never empty.
    pub iterations: Vec<Iteration>,
    /// Duration of the lease without renewal. The worker measures it by its own monotonic clock, from before it
    /// asked.
    pub lease_for: Duration,
    /// The number of the retry that these dialogues belong to; no two retries of a run share one. `None` if they are no
    /// retry.
    pub retry: Option<u64>,
}

/// A record on its way to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub run: RunId,
    pub key: DialogueKey,
    /// Why it has no scores; `None` if it has.
    pub failure: Option<FailureCause>,
    /// The [`Record`] as JSON, without line feeds, as the log stores it.
    pub json: Arc<str>,
}

impl Delivery {
    /// Prepares a record for delivery.
    ///
    /// # Errors
    /// The record cannot be serialised.
    pub fn of(run: RunId, record: &Record) -> Result<Self, serde_json::Error> {
        let failure = record.outcome.failure();
        let json = serde_json::to_string(record)?.into();
        Ok(Self { run, key: record.key.clone(), failure, json })
    }
}

/// The coordinator's answer to one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It is durable; the worker may drop it.
    Stored,
    /// It cannot be stored now because its run is unknown or cannot be loaded. An operator or another coordinator may
    /// fix that; the worker keeps the record and offers it again.
    Later {
        /// Why, for people.
        reason: String,
    },
    /// It can never be stored; the worker logs the reason and drops it.
    Refused {
        /// Why, for people.
        reason: String,
    },
}

/// What a worker needs to know of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunMaterial {
    pub run: RunId,
    pub seed: u64,
    /// Hash of the pack's manifest, hexadecimal SHA-256.
    pub pack_hash: String,
    /// The tasks in the order of the plan.
    pub tasks: Vec<TaskUse>,
    /// The models in the order of the plan.
    pub models: Vec<ModelSpec>,
    /// Whether texts of the run may be written to disk only in encrypted form.
    pub protected: bool,
    /// Which model's answers the run judges; `None` if it is not a run of a judge.
    pub about: Option<About>,
}

/// A task of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskUse {
    /// Its label in the run.
    pub label: TaskLabel,
    pub pack_label: TaskLabel,
}

/// A limit on calls with one provider key, shared by all workers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RateBudget {
    pub name: String,
    /// Calls per minute, from 1.
    pub per_minute: u32,
}

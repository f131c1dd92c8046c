//! What workers and coordinators say to each other: the seam between them.
//!
//! A worker reports its *whole* state and is told everything that concerns it (level-triggered): an answer that
//! is lost loses nothing, because the next report brings it again. The same trait is implemented by a coordinator
//! in the same process, for `kgfleet run`, and by a client over gRPC.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::benchmark::{Connector, ModelSpec};
use crate::error::ServiceError;
use crate::ids::{DialogueKey, InstanceId, Iteration, ModelLabel, RunId, TaskLabel, WorkerId};
use crate::outcome::FailureCause;
use crate::provenance::About;
use crate::reach::Reach;
use crate::record::Record;

/// What every call returns; boxed, because the exchange is chosen at run time.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, ServiceError>> + Send + 'a>>;

/// A coordinator as its workers see it.
///
/// Every call may be repeated after an error of a transient code; what repetition does is said with each.
pub trait WorkExchange: Send + Sync + 'static {
    /// Registers a worker. One that registers holds nothing yet: units that its name holds were held by a process that
    /// died, which is held against them. Repetition: the same.
    fn register(&self, registration: Registration) -> Reply<'_, Registered>;

    /// Takes note of a worker's state, renews its leases and answers with what it is to do. Where the report
    /// offers room and nothing is there to be done, the answer waits up to [`Report::wait`]. Repetition: the
    /// same; grants of a lost answer come again.
    fn exchange(&self, report: Report) -> Reply<'_, Orders>;

    /// Stores records: the answer comes when they are durable and the queue knows them, one receipt for each, in
    /// order. Repetition: stored again at most, and counted once.
    fn deliver(&self, deliveries: Vec<Delivery>) -> Reply<'_, Vec<Receipt>>;

    /// What a worker needs to know of a run.
    fn run_material<'a>(&'a self, run: &'a RunId) -> Reply<'a, RunMaterial>;

    /// A pack as a sealed file, by the hash of its manifest (hexadecimal SHA-256).
    fn pack<'a>(&'a self, hash: &'a str) -> Reply<'a, Arc<[u8]>>;

    /// Takes permits of a rate budget that all workers share: `None` when they are granted, else how long to wait
    /// before asking again. Repetition: takes others.
    fn take_rate<'a>(&'a self, budget: &'a RateBudget, permits: u32) -> Reply<'a, Option<Duration>>;

    /// A worker has ended and holds nothing any more. Repetition: harmless.
    fn deregister<'a>(&'a self, worker: &'a WorkerId, instance: &'a InstanceId) -> Reply<'a, ()>;
}

/// A worker's first words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its name, unique in the fleet.
    pub worker: WorkerId,
    /// This process; empty for one that tells none.
    pub instance: InstanceId,
    /// Earlier processes that have ended, which it knows because it has their spool: it takes the name over from them.
    pub predecessors: Vec<InstanceId>,
    /// Version of its kgfleet.
    pub kgfleet: String,
    /// Where it runs, for people.
    pub host: String,
}

/// The answer to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Version of the coordinator's kgfleet.
    pub kgfleet: String,
    /// A worker reports at least this often, or is taken for dead after a few times as long.
    pub report_every: Duration,
    /// Set where the worker was not registered, because another process has its name.
    pub taken: Option<NameTaken>,
}

/// Another process that has the name of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTaken {
    /// The process.
    pub instance: InstanceId,
    /// Where it runs.
    pub host: String,
    /// How long ago it was heard of.
    pub silent_for: Duration,
    /// When the name is free if nothing is heard of it again.
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

/// The proof of holding a unit; stale as soon as the unit changed hands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId {
    /// The run.
    pub run: RunId,
    /// Generation of the run's queue when the lease was given.
    pub generation: u64,
    /// Model of the unit.
    pub model: ModelLabel,
    /// Number of the unit in its run, from 0.
    pub unit: u64,
    /// How many times the unit has been leased, this one included: from 1, the fence.
    pub attempt: u32,
}

/// Everything that a worker knows of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Who reports.
    pub worker: WorkerId,
    /// Its process; empty for one that tells none.
    pub instance: InstanceId,
    /// What it serves, and how much more of it could be begun now.
    pub offers: Vec<Offer>,
    /// The leases that it works on; they are renewed.
    pub held: Vec<LeaseId>,
    /// Leases all of whose records were received: their units are done.
    pub finished: Vec<LeaseId>,
    /// Leases that it gives back; nothing is held against their units.
    pub released: Vec<LeaseId>,
    /// Models that cannot be asked for a while.
    pub parked: Vec<Parking>,
    /// Whether it is ending: it gets no more work.
    pub draining: bool,
    /// How long the answer may wait for work; zero for an answer at once.
    pub wait: Duration,
    /// For people.
    pub status: WorkerStatus,
}

/// Something that a worker can ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What it can ask.
    pub serves: Serves,
    /// Dialogues that could be begun at once; 0 when it has enough.
    pub room: u32,
}

/// What a worker can ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Serves {
    /// A model, by the name that its server gives it: models of configurations that are reached over the
    /// OpenAI API or simulated, and ask for this name.
    Model(String),
    /// Models that configurations reach by this connector at an address of their own.
    Connector(Connector),
}

/// A model that cannot be asked for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
    /// The run.
    pub run: RunId,
    /// The model.
    pub model: ModelLabel,
    /// For how long.
    pub parked_for: Duration,
    /// Why, for people.
    pub reason: String,
}

/// What a worker tells people about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct WorkerStatus {
    /// Version of its kgfleet.
    pub kgfleet: String,
    /// Where it runs.
    pub host: String,
    /// What it serves, by name.
    pub serves: Vec<String>,
    /// Dialogues in flight.
    pub in_flight: u32,
    /// Dialogues that it would hold at once.
    pub limit: u32,
    /// Dialogues ended since it began.
    pub dialogues: u64,
    /// Records that no coordinator has acknowledged yet.
    pub unacknowledged: u64,
    /// Of these, those of runs that the coordinator does not know or cannot load; see [`Receipt::Later`].
    pub parked_records: u64,
    /// What keeps it from working, where something does.
    pub trouble: Option<String>,
    /// What it may ask beyond its own servers; none from one that does not say.
    pub reach: Option<Reach>,
    /// Keys that it was told of and does not have, each with the reason.
    pub lacks: Vec<String>,
    /// What keeps answers from doing harm where they are judged.
    pub sandbox: Vec<String>,
}

/// What a worker is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Units for it.
    pub grants: Vec<Grant>,
    /// Leases that it reported as held and does not hold any more: their dialogues are to be stopped.
    pub lost: Vec<LeaseId>,
    /// Finished and released leases, and parkings, were taken note of.
    pub noted: bool,
    /// It is to finish what it holds, or give it back, and end.
    pub drain: bool,
    /// Another process has its name, and what it held: it is to deliver its records and end.
    pub superseded: Option<NameTaken>,
}

/// A unit for a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The proof of holding it.
    pub lease: LeaseId,
    /// The task, by its label in the run.
    pub task: TaskLabel,
    /// The dialogues of the unit that have no record yet; never empty.
    pub iterations: Vec<Iteration>,
    /// How long it holds without renewal. The worker counts by its own monotonic clock, from before it asked.
    pub lease_for: Duration,
    /// Which retry of its dialogues this is, by a number that no other retry has; `None` where it is none.
    pub retry: Option<u64>,
}

/// A record on its way to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The run.
    pub run: RunId,
    /// The dialogue.
    pub key: DialogueKey,
    /// Why it has no scores; `None` when it has.
    pub failure: Option<FailureCause>,
    /// The [`Record`] as JSON, without line feeds: what the log keeps.
    pub json: Arc<str>,
}

impl Delivery {
    /// Of a record.
    ///
    /// # Errors
    /// The record cannot be written as JSON.
    pub fn of(run: RunId, record: &Record) -> Result<Self, serde_json::Error> {
        let failure = record.outcome.failure();
        let json = serde_json::to_string(record)?.into();
        Ok(Self { run, key: record.key.clone(), failure, json })
    }
}

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It is durable; the worker may forget it.
    Stored,
    /// It cannot be stored here now, for a reason that concerns its run alone: the run is not known, or cannot be loaded.
    /// People or another coordinator may mend that; the worker keeps the record and offers it again.
    Later {
        /// Why, for people.
        reason: String,
    },
    /// It cannot be stored, now or later; the worker says so and forgets it.
    Refused {
        /// Why, for people.
        reason: String,
    },
}

/// What a worker needs to know of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunMaterial {
    /// The run.
    pub run: RunId,
    /// Its seed.
    pub seed: u64,
    /// Hash of the pack's manifest, hexadecimal SHA-256.
    pub pack_hash: String,
    /// The tasks in the order of the plan.
    pub tasks: Vec<TaskUse>,
    /// The models in the order of the plan.
    pub models: Vec<ModelSpec>,
    /// Whether texts of the run may be written to a disk only encrypted.
    pub protected: bool,
    /// Whom the run judges, where its models are judges.
    pub about: Option<About>,
}

/// A task of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskUse {
    /// Its label in the run.
    pub label: TaskLabel,
    /// Its label in the pack.
    pub pack_label: TaskLabel,
}

/// The calls that one key of a provider bears, shared by all workers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RateBudget {
    /// Its name.
    pub name: String,
    /// Calls per minute, from 1.
    pub per_minute: u32,
}

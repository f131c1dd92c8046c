//! What a worker is told.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::exchange::WorkerStatus;
use domain::{Connector, WorkerId};
use models::{RetryPolicy, Secret};

use crate::connect::{Connect, Connectors};
use crate::dialogue::Deadlines;
use crate::discovery::Endpoints;
use crate::keys::Keyring;
use crate::readiness::Readiness;
use crate::runs::EvaluationMode;

/// Settings of one worker.
#[derive(Clone)]
pub struct WorkerConfig {
    /// Its name, unique in the fleet. A worker that is started again under its name takes up its spool.
    pub worker: WorkerId,
    /// Where it runs, for people.
    pub host: String,
    /// Servers with an OpenAI-compatible API; whatever they serve is offered.
    pub endpoints: Endpoints,
    /// Names of models that the servers are expected to serve; others are not asked. Empty: any.
    pub expected_models: Vec<String>,
    /// Sent to these servers as bearer token where a model's configuration names no key.
    pub server_key: Option<Secret>,
    /// Models that configurations reach by these connectors at addresses of their own are offered as well.
    pub connectors: Vec<Connector>,
    /// Its keys, and where it may ask, in a fleet; without them configurations are this machine's own. The same that
    /// [`connect`](Self::connect) was made with.
    pub keys: Option<Arc<Keyring>>,
    /// Dialogues in flight per server, instead of adapting.
    pub concurrency: Option<u32>,
    /// Who judges answers.
    pub evaluation: EvaluationMode,
    /// What keeps answers from doing harm there, for people; see [`confine::available`](crate::evaluate::sandbox::confine).
    pub sandbox: Vec<String>,
    /// Processes or threads that judge, for each pack and set of tasks.
    pub evaluators: NonZeroUsize,
    /// Where packs that are not part of the program are kept by their hashes.
    pub pack_dir: Option<PathBuf>,
    /// Where records wait on disk; none where they wait in memory, as in one process with the coordinator.
    pub spool: Option<SpoolConfig>,
    /// How long dialogues may go on after the worker was told to end. Delivering their records may take up to 10 s
    /// more.
    pub grace: Duration,
    /// Repetition of calls that failed for a reason of transport.
    pub retry: RetryPolicy,
    /// Time limits of calls and dialogues.
    pub deadlines: Deadlines,
    /// Makes connectors.
    pub connect: Arc<dyn Connect>,
    /// Where the worker says whether it can do its work.
    pub readiness: Readiness,
}

/// Records on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolConfig {
    /// The folder under which every worker has its own, by its name.
    pub dir: PathBuf,
    /// With so many bytes waiting, no dialogue is begun. The records of dialogues under way come on top of it.
    pub bytes_max: u64,
}

impl SpoolConfig {
    /// Bytes of a spool where nobody says otherwise: more than 100 000 usual records.
    pub const BYTES_MAX: u64 = 1 << 30;
}

impl WorkerConfig {
    /// The usual settings of a worker without servers.
    pub fn new(worker: WorkerId, evaluation: EvaluationMode) -> Self {
        Self {
            worker,
            host: String::new(),
            endpoints: Endpoints::Listed(Vec::new()),
            expected_models: Vec::new(),
            server_key: None,
            connectors: Vec::new(),
            keys: None,
            concurrency: None,
            evaluation,
            sandbox: Vec::new(),
            evaluators: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            pack_dir: None,
            spool: None,
            grace: Duration::from_secs(25),
            retry: RetryPolicy::default(),
            deadlines: Deadlines::default(),
            connect: Arc::new(Connectors::default()),
            readiness: Readiness::default(),
        }
    }

    /// What is true of the worker before it has done anything, for people.
    pub(crate) fn first_status(&self) -> WorkerStatus {
        WorkerStatus {
            kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.host.clone(),
            reach: self.keys.as_ref().map(|keys| keys.reach().clone()),
            sandbox: self.sandbox.clone(),
            lacks: self.keys.as_ref().map(|keys| keys.lacks().to_vec()).unwrap_or_default(),
            ..WorkerStatus::default()
        }
    }
}

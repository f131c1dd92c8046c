//! Configuration of a worker.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::exchange::{WorkerPhase, WorkerStatus};
use domain::{Connector, MadeAt, WorkerId};
use models::{RetryPolicy, Secret};
use service_kit::Readiness;

use crate::connect::{Connect, Connectors};
use crate::discovery::Endpoints;
use crate::keys::Keyring;
use crate::runs::EvaluationMode;
use crate::until_done::EndRules;

/// Number of expected models in the status.
const EXPECTED_TOLD_MAX: usize = 64;

/// Settings of one worker.
#[derive(Clone)]
pub struct WorkerConfig {
    /// Its name, unique in the fleet. A worker restarted under its name takes over its spool.
    pub worker: WorkerId,
    /// Host name, for people.
    pub host: String,
    /// Servers with an OpenAI-compatible API; all their models are offered.
    pub endpoints: Endpoints,
    /// Names of models that the servers must serve; others are not offered. Empty: any.
    pub expected_models: Vec<String>,
    /// Bearer token for these servers, if a model's configuration names no key.
    pub server_key: Option<Secret>,
    /// Connectors whose models are also offered, at addresses given in configurations or the provider's own.
    pub connectors: Vec<Connector>,
    /// Its keys and allowed addresses, in a fleet. Without them, configurations come from this machine and may refer to
    /// its files and variables. Must be the same as in [`connect`](Self::connect).
    pub keys: Option<Arc<Keyring>>,
    /// Dialogues in flight per server, instead of adapting.
    pub concurrency: Option<u32>,
    /// How answers are judged.
    pub evaluation: EvaluationMode,
    /// The protections of the sandbox, for people; see [`confine::available`](crate::evaluate::sandbox::confine).
    pub sandbox: Vec<String>,
    /// Number of judging processes or threads, per pack and set of tasks.
    pub evaluators: NonZeroUsize,
    /// Folder for packs other than the built-in one, by hash.
    pub pack_dir: Option<PathBuf>,
    /// Where undelivered records are kept on disk; `None` to keep them in memory, as in one process with the
    /// coordinator.
    pub spool: Option<SpoolConfig>,
    /// Grace period for dialogues in flight when the worker stops. Delivering their records may take up to 10 s more.
    pub grace: Duration,
    /// Is told once what becomes of the dialogues when the worker stops.
    pub on_drain: fn(Draining),
    /// Retries of calls that failed in transport.
    pub retry: RetryPolicy,
    /// Makes connectors.
    pub connect: Arc<dyn Connect>,
    /// Readiness of the worker.
    pub readiness: Readiness,
    /// When it ends by itself, because its models have no work left; `None` if never.
    pub until_done: Option<EndRules>,
    /// Where its records are made, as far as that does not depend on the server; `None` to say nothing of it.
    pub made_at: Option<MadeAt>,
    /// The pool that it was started for, for people; empty if none.
    pub pool: String,
    /// The machine of its server, for people; empty if unknown.
    pub node: String,
    /// GPUs of its server, for people; 0 if unknown.
    pub gpus: u32,
}

/// What becomes of the dialogues in flight of a worker that takes no more work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draining {
    /// Given back at once, because no server has accepted their calls.
    pub given_up: usize,
    /// Awaited within the grace period.
    pub in_flight: usize,
}

/// Configuration of the spool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolConfig {
    /// The folder that contains each worker's spool, by name.
    pub dir: PathBuf,
    /// Spool size at which no new dialogues start. Records of dialogues in flight come on top.
    pub bytes_max: u64,
}

impl SpoolConfig {
    /// Default of the spool size: more than 100 000 typical records.
    pub const BYTES_MAX: u64 = 1 << 30;
}

impl WorkerConfig {
    /// Defaults, without servers.
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
            on_drain: |_| {},
            retry: RetryPolicy::default(),
            connect: Arc::new(Connectors::default()),
            readiness: Readiness::not_yet("it has not reached a coordinator yet"),
            until_done: None,
            made_at: None,
            pool: String::new(),
            node: String::new(),
            gpus: 0,
        }
    }

    /// The initial status.
    pub(crate) fn first_status(&self) -> WorkerStatus {
        WorkerStatus {
            kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.host.clone(),
            expects: self.expected_models.iter().take(EXPECTED_TOLD_MAX).cloned().collect(),
            pool: self.pool.clone(),
            node: self.node.clone(),
            gpus: self.gpus,
            phase: Some(WorkerPhase::Loading),
            reach: self.keys.as_ref().map(|keys| keys.reach().clone()),
            sandbox: self.sandbox.clone(),
            lacks: self.keys.as_ref().map(|keys| keys.lacks().to_vec()).unwrap_or_default(),
            ..WorkerStatus::default()
        }
    }
}

//! A worker: holds many dialogues with models at once, and judges the answers.
//!
//! Reading order: [`dialogue`] runs one dialogue from first prompt to record, and [`evaluate`] judges answers in
//! sandboxed processes. Around them are plain state machines: [`slots`] for
//! leases and dialogues, [`servers`] and [`limiter`] for servers and their concurrency, [`first`] for the first question of a
//! model, [`breaker`] for models that cannot be asked, [`warm`] for what starts next,
//! [`until_done`] for the end that a worker decides on itself, [`outbox::queue`] for the delivery of records. [`worker`]
//! starts the parts that do the IO: the work loop, the lease keeper in [`keeper`], the [`outbox`] with its spool, and
//! [`discovery`]. [`runs`] and [`connect`] provide tasks, evaluators and models.

pub mod breaker;
pub mod config;
pub mod connect;
pub mod dialogue;
pub mod discovery;
pub mod evaluate;
pub mod first;
mod fitting;
mod instance;
pub mod keeper;
pub mod keys;
pub mod ledger;
pub mod limiter;
mod looks;
pub mod material;
pub mod metrics;
mod name;
pub mod outbox;
pub mod own_server;
pub mod rate;
mod renew;
pub mod runs;
pub mod servers;
pub mod slots;
mod unrecorded;
pub mod until_done;
mod vllm;
pub mod warm;
mod work;
pub mod worker;

pub use config::{Draining, SpoolConfig, WorkerConfig};
pub use connect::{Connect, ConnectError, Connected, Connectors, FoundServer, Listed};
pub use dialogue::{DialogueContext, DialogueJob, Script, run_dialogue};
pub use discovery::Endpoints;
pub use evaluate::{
    Evaluator, EvaluatorError, InProcess, Judgement, Sandbox, SandboxConfig, SandboxLimits, TaskList,
};
pub use keeper::ExchangeFactory;
pub use keys::{Keyring, KeyringError};
pub use limiter::Limiter;
pub use material::EVALUATOR_COMMAND;
pub use own_server::{OwnServer, ServerCommand, ServerState};
pub use runs::{EvaluationMode, PackProvenance, scorer};
pub use service_kit::{Stop, StopReceiver};
pub use until_done::{EndRules, IdleAfter};
pub use worker::{Worker, WorkerError, WorkerReport};

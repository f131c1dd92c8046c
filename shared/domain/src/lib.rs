//! The nouns of kgfleet and their rules. No IO, no async, no clock.
//!
//! Reading order: [`ids`] names things, [`chat`] is what goes to a model and comes back, [`dialogue`] is
//! one prompt-answer-evaluate loop, [`outcome`] is how it ended, [`record`] is what is kept of it,
//! [`seed`] makes all of it repeatable, [`standing`] says which of several records counts, [`uid`] tells questions to judges
//! apart. [`exchange`] is what workers
//! and coordinators say to each other, [`control`] what people say to a coordinator; [`caller`] is who says it,
//! [`reach`] what a worker may ask.

pub mod benchmark;
pub mod caller;
pub mod chat;
pub mod comparison;
pub mod control;
pub mod dialogue;
pub mod error;
pub mod exchange;
pub mod glob;
pub mod ids;
pub mod mean;
pub mod outcome;
pub mod provenance;
pub mod reach;
pub mod record;
pub mod retry;
pub mod seed;
pub mod standing;
pub mod uid;

pub use benchmark::{Ask, Connector, KeyPlace, ModelSpec};
pub use chat::{FinishReason, Message, Role, Sampling, Usage};
pub use dialogue::{Answer, Prompt, PromptKind, Round};
pub use error::{ErrorCode, ServiceError};
pub use ids::{DialogueKey, InstanceId, Iteration, ModelLabel, RecordId, RunId, TaskLabel, WorkerId};
pub use mean::Mean;
pub use outcome::{FailureCause, Outcome};
pub use provenance::{About, ModelProvenance, Provenance, TaskProvenance};
pub use record::{Attempt, Record};
pub use retry::RetryAdvice;
pub use standing::Standing;
pub use uid::CaseUid;

/// The scores of one dialogue, in the shape of LLM-KG-Bench result files: single-shot tasks map score names
/// to numbers, multi-shot tasks map `"0"`, `"1"`, …, `"mean"`, `"max"`, `"meanExt"`, `"last"` to such maps.
pub type Scores = serde_json::Map<String, serde_json::Value>;

/// What explains the scores of one dialogue; same shape as [`Scores`], any JSON value as leaf.
pub type Infos = serde_json::Map<String, serde_json::Value>;

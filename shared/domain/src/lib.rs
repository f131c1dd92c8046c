//! The shared types of kgfleet and their rules. No IO and no async runtime; the clock is read only in
//! [`machine`].
//!
//! Reading order: [`ids`] has the names, [`chat`] the input and output of a model, [`dialogue`] one
//! prompt-answer-evaluate loop, [`outcome`] its end, [`record`] what is stored of it and [`redaction`] what stands for protected texts; [`seed`] makes it repeatable.
//! [`exchange`] is the interface between workers and
//! coordinators, [`control`] the one between people and coordinators; [`caller`] has callers and roles, [`reach`] the
//! addresses and keys that a worker may use, [`pools`] what a conductor tells. [`uid`] identifies questions to judges. [`mean`] and [`ranking`] say what a model
//! has reached, and what can be said of it before all is known; [`priority`] what share of a fleet a benchmark gets.
//! [`model_name`] says whether two names mean the same model, [`spelling`] offers names in place of a wrong one.

#[doc(hidden)]
pub use schemars;

#[macro_use]
mod named;

pub mod backoff;
pub mod caller;
pub mod chat;
pub mod comparison;
pub mod control;
pub mod cut_text;
pub mod dialogue;
pub mod error;
pub mod exchange;
pub mod glob;
pub mod ids;
pub mod machine;
pub mod mean;
pub mod model;
pub mod model_name;
pub mod odd_answer;
pub mod oddity;
pub mod outcome;
pub mod pools;
pub mod priority;
pub mod provenance;
pub mod provider;
pub mod ranking;
pub mod reach;
pub mod record;
pub mod redaction;
pub mod request;
pub mod retry;
pub mod seed;
pub mod spelling;
pub mod text;
pub mod time_limits;
pub mod uid;
pub mod usage;

pub use backoff::Backoff;
pub use chat::{FinishReason, Message, Role, Sampling, Usage, tokens_of_all};
pub use dialogue::{Answer, DialogueTime, Prompt, PromptKind, Round};
pub use error::{ErrorCode, ServiceError};
pub use ids::{DialogueKey, InstanceId, Iteration, ModelLabel, RecordId, RunId, TaskLabel, WorkerId};
pub use mean::Mean;
pub use model::{KeyPlace, ModelSpec};
pub use oddity::{Oddities, Oddity};
pub use outcome::{FailureCause, Outcome};
pub use priority::Priority;
pub use provenance::{About, MadeAt, ModelProvenance, Provenance, TaskProvenance};
pub use provider::{Ask, Connector, InFlightBounds, ModelHome, PROVIDERS, Provider};
pub use record::{Attempt, Record};
pub use request::{ClassifyApi, PairLayout, ReasoningMarks, RequestSettings};
pub use retry::RetryAdvice;
pub use time_limits::{HumanDuration, TimeLimits};
pub use uid::CaseUid;
pub use usage::ModelUsage;

/// The scores of one dialogue, in the shape of LLM-KG-Bench result files: single-shot tasks map score names
/// to numbers, multi-shot tasks map `"0"`, `"1"`, …, `"mean"`, `"max"`, `"meanExt"`, `"last"` to such maps.
pub type Scores = serde_json::Map<String, serde_json::Value>;

/// What explains the scores of one dialogue; same shape as [`Scores`], any JSON value as leaf.
pub type Infos = serde_json::Map<String, serde_json::Value>;

//! A simulated vLLM server: the OpenAI-compatible HTTP interface of vLLM 0.32, its error bodies, its metrics and its
//! slowdown under load, with answers from simulated models instead of a GPU.
//!
//! It serves three purposes. `kgfleet run` without arguments needs language models that are always available; tests
//! need a server with predictable answers and failures; benchmarks of the client need a server that costs almost
//! nothing.
//!
//! Everything a simulated model says is a pure function of the model's name, the first prompt, the request's seed and
//! the round (see [`answers`]), independent of time, order and other requests. Two runs with equal seeds are equal at
//! any concurrency.
//!
//! Reading order: [`config`] has the settings; [`server`] the HTTP layer and the path of one request; `wire` the
//! JSON; [`answers`] decides what is said and [`pooling`] what embedders and classifiers answer, [`latency`] when,
//! [`faults`] what goes wrong; `metrics` is what `/metrics` shows; [`tokenizer`] and [`identity`] are shared by all
//! of them.
//!
//! Omitted on purpose: completions without a chat, reasoning, logits and `logprobs` (always null), tools, several choices (`n`
//! above 1 is refused), speculative decoding, preemption (blocks are reserved for the whole answer at admission).

pub mod answers;
mod bounds;
pub mod config;
pub mod faults;
pub mod identity;
pub mod latency;
mod metrics;
mod pace;
pub mod pooling;
pub mod server;
pub mod tokenizer;
mod wire;

pub use answers::{AnswerConfig, AnswerKey, AnswerModel, KnownCase, SimAsk, SkillDial};
pub use bounds::ConfigError;
pub use config::{CapacityChange, ModelConfig, SimConfig};
pub use faults::{FaultKind, FaultPlan, FaultRule, FaultWhen};
pub use latency::Profile;
pub use server::{SimHandle, SimStats, Simulator};

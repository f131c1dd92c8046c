//! A worker: holds dialogues with models, many at once, and judges the answers.
//!
//! Reading order: [`dialogue`] runs one dialogue from first prompt to record, [`evaluate`] judges answers in
//! sandboxed processes, [`limiter`] decides how many dialogues a model is given at once.

pub mod dialogue;
pub mod evaluate;
pub mod limiter;

pub use dialogue::{Deadlines, DialogueContext, DialogueJob, PackProvenance, Script, hold};
pub use evaluate::{
    Evaluator, EvaluatorError, InProcess, Judgement, Sandbox, SandboxConfig, SandboxLimits, TaskList,
};
pub use limiter::{Limiter, LimiterBounds};

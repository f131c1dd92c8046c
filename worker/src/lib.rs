//! A worker: holds dialogues with models, many at once, and judges the answers.
//!
//! Reading order: [`dialogue`] runs one dialogue from first prompt to record, [`evaluate`] judges answers in
//! sandboxed processes.

pub mod dialogue;
pub mod evaluate;

pub use dialogue::{Deadlines, DialogueContext, DialogueJob, PackProvenance, hold};
pub use evaluate::{
    Evaluator, EvaluatorError, InProcess, Judgement, Sandbox, SandboxConfig, SandboxLimits, TaskList,
};

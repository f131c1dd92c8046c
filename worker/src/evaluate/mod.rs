//! Evaluation of answers, off the async threads.
//!
//! An answer is hostile input: [`Sandbox`] judges it in a child process with limits on memory and CPU time.
//! [`InProcess`] judges it on a thread of this process, for trusted answers and for tests.

use std::sync::Arc;

use tasks::{Task, Verdict};

mod in_process;
mod known;
pub mod sandbox;

pub use in_process::InProcess;
pub use sandbox::{Sandbox, SandboxConfig, SandboxLimits, SandboxStats};

/// Stack size of a judging thread, in bytes. Parsers recurse with the nesting of their input; the tasks refuse
/// nesting that this stack could not hold.
pub const STACK_BYTES: usize = 64 << 20;

/// One answer to judge. Equal ones have equal verdicts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Judgement {
    /// Index of the task in the list that the evaluator was built with.
    pub task: usize,
    /// Index of the case within the task.
    pub case: usize,
    pub answer: Arc<str>,
}

/// Judges answers.
#[async_trait::async_trait]
pub trait Evaluator: Send + Sync {
    /// The verdict on one answer. If the answer hits a limit, the verdict says so. An error is our own fault and
    /// means that the dialogue is not scored.
    async fn judge(&self, judgement: Judgement) -> Result<Verdict, EvaluatorError>;
}

/// The evaluator itself failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluatorError {
    /// No child process could be started.
    #[error("cannot start an evaluation process: {0}")]
    Start(String),
    /// Child processes were lost for reasons that no answer can cause: killed from outside, stopped, starved.
    #[error("{losses} evaluation processes were lost, the last one because {why}")]
    Interrupted {
        /// How many in a row.
        losses: u32,
        /// Why the last one was lost.
        why: String,
    },
    /// Child processes died on this answer at every stage of evaluation.
    #[error("evaluation died at every stage, last by {0}")]
    Died(String),
    /// What was given in place of a case cannot be used.
    #[error("{0}")]
    Refused(String),
    /// The evaluator was shut down.
    #[error("the evaluator was shut down")]
    Closed,
}

/// The tasks of an evaluator, by index.
pub type TaskList = Arc<[Arc<Task>]>;

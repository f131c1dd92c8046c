//! What can go wrong with a queue, and whether trying again helps.

use domain::{RetryAdvice, RunId};

use crate::run::RunState;

/// The result of every queue operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation changed nothing, except for [`Error::Unavailable`], where it may have been carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store does not know the run: it was forgotten, never created, or the store lost its data. The
    /// coordinator rebuilds it from manifest and record log.
    #[error(
        "run `{run}` is not in the queue: it was forgotten, or the queue lost its data and must be rebuilt"
    )]
    RunGone {
        /// The run asked for.
        run: RunId,
    },
    /// The queue was rebuilt since the caller last looked.
    #[error("run `{run}` is in generation {current}, the call was for generation {given}")]
    StaleGeneration {
        /// The run asked for.
        run: RunId,
        /// The caller's generation.
        given: u64,
        /// The queue's generation.
        current: u64,
    },
    /// A run of this name exists with another plan.
    #[error("run `{run}` exists with plan {existing}; plan {given} needs a run of its own")]
    PlanMismatch {
        /// The run asked for.
        run: RunId,
        /// Hash of the plan in the queue.
        existing: String,
        /// Hash of the plan given.
        given: String,
    },
    /// The run cannot go from its state to the one asked for.
    #[error("run `{run}` is {from} and cannot become {to}")]
    IllegalState {
        /// The run asked for.
        run: RunId,
        from: RunState,
        /// The state asked for.
        to: RunState,
    },
    /// The input breaks a bound of [`crate::limits`].
    #[error("{what}: {why}")]
    Invalid {
        /// What was refused.
        what: &'static str,
        /// The bound, and what was given.
        why: String,
    },
    /// The store has no room left.
    #[error("the queue is full: {message}")]
    Full {
        /// What to do about it.
        message: String,
    },
    /// The store cannot be reached or did not answer in time. The operation may have been carried out: every
    /// operation of [`crate::QueueStore`] says what repeating it does.
    #[error("the queue cannot be reached: {message}")]
    Unavailable {
        /// What the network or the server said.
        message: String,
    },
    /// The server may not be used as it is configured.
    #[error("the queue server is not fit for use: {message}")]
    Unfit {
        /// What is wrong and what to do about it.
        message: String,
    },
    /// The store answered, or holds, what no version of this crate writes.
    #[error("the queue holds what it should not: {message}")]
    Corrupt {
        /// What was found where.
        message: String,
    },
}

impl Error {
    /// Whether the same call may be repeated.
    pub fn retry(&self) -> RetryAdvice {
        match self {
            Self::Unavailable { .. } | Self::Full { .. } => RetryAdvice::Transient,
            _ => RetryAdvice::No,
        }
    }
}

//! Errors of a queue, and whether a retry helps.

use domain::{RetryAdvice, RunId};

use crate::run_state::RunState;

/// The result of every queue operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed. It changed nothing, except that with [`Error::Unavailable`] and [`Error::Unwritable`] it may have been
/// carried out.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store does not know the run: it was forgotten, never created, or the store lost its data. The coordinator
    /// rebuilds it from manifest and record log.
    #[error(
        "run `{run}` is not in the queue: it was forgotten, or the queue lost its data and must be rebuilt"
    )]
    RunGone {
        /// The run asked for.
        run: RunId,
    },
    /// The queue was rebuilt since the caller last read it.
    #[error("run `{run}` is in generation {current}, but the call was for generation {given}")]
    StaleGeneration {
        /// The run asked for.
        run: RunId,
        /// The caller's generation.
        given: u64,
        /// The queue's generation.
        current: u64,
    },
    /// A run of this name exists with another plan.
    #[error("run `{run}` exists with plan {existing}; plan {given} needs its own run")]
    PlanMismatch {
        /// The run asked for.
        run: RunId,
        /// Hash of the plan in the queue.
        existing: String,
        /// Hash of the plan given.
        given: String,
    },
    /// The run cannot change from its state to the requested one.
    #[error("run `{run}` is {from} and cannot become {to}")]
    IllegalState {
        /// The run asked for.
        run: RunId,
        from: RunState,
        /// The requested state.
        to: RunState,
    },
    /// The input exceeds a limit of [`crate::limits`].
    #[error("{what}: {why}")]
    Invalid {
        /// What was refused.
        what: &'static str,
        /// The limit, and the given value.
        why: String,
    },
    /// The store can be read and takes no writes: it is full, a replica, or cannot save. Nothing is taken over meanwhile.
    #[error("the queue takes no writes: {message}")]
    Unwritable {
        /// Why, and what to do about it.
        message: String,
    },
    /// As many workers are registered as may be, or as one identity may have. There is room when some end.
    #[error("no place for another worker: {why}")]
    WorkersFull {
        /// Which limit is reached.
        why: String,
    },
    /// The store is unreachable or did not answer in time. The operation may have been carried out: each method of
    /// [`crate::QueueStore`] documents its repetition.
    #[error("the queue cannot be reached: {message}")]
    Unavailable {
        /// The message of the network or the server.
        message: String,
    },
    /// Another coordinator leads the queue, or nobody is known to lead it yet. Nothing was carried out.
    #[error("{leader}")]
    NotLeader {
        /// Who leads, in a sentence.
        leader: String,
    },
    /// The server's configuration makes it unusable.
    #[error("the queue server is not fit for use: {message}")]
    Unfit {
        /// The problem, and what to do about it.
        message: String,
    },
    /// The store contains, or answered with, data that no version of this crate writes.
    #[error("the queue holds invalid data: {message}")]
    Corrupt {
        /// What was found where.
        message: String,
    },
}

impl Error {
    /// Whether a retry of the same call may succeed.
    pub fn retry(&self) -> RetryAdvice {
        match self {
            Self::Unavailable { .. }
            | Self::Unwritable { .. }
            | Self::NotLeader { .. }
            | Self::WorkersFull { .. } => RetryAdvice::Transient,
            _ => RetryAdvice::No,
        }
    }
}

//! Converts errors of queue and sink into errors for callers of the coordinator.

use domain::{ErrorCode, ServiceError};
use queue::Error as QueueError;

/// The result of calls.
pub(crate) type Result<T> = std::result::Result<T, ServiceError>;

pub(crate) fn invalid(message: impl Into<String>) -> ServiceError {
    ServiceError::new(ErrorCode::Invalid, message)
}

pub(crate) fn not_found(message: impl Into<String>) -> ServiceError {
    ServiceError::new(ErrorCode::NotFound, message)
}

pub(crate) fn conflict(message: impl Into<String>) -> ServiceError {
    ServiceError::new(ErrorCode::Conflict, message)
}

pub(crate) fn internal(message: impl std::fmt::Display) -> ServiceError {
    ServiceError::new(ErrorCode::Internal, message.to_string())
}

/// An error of the queue.
pub(crate) fn of_queue(error: &QueueError) -> ServiceError {
    let code = match error {
        QueueError::Unavailable { .. }
        | QueueError::Unwritable { .. }
        | QueueError::NotLeader { .. }
        | QueueError::RunGone { .. }
        | QueueError::StaleGeneration { .. } => ErrorCode::Unavailable,
        QueueError::WorkersFull { .. } => ErrorCode::Full,
        QueueError::Invalid { .. } => ErrorCode::Invalid,
        QueueError::PlanMismatch { .. } | QueueError::IllegalState { .. } => ErrorCode::Conflict,
        _ => ErrorCode::Internal,
    };
    let advice = match error {
        QueueError::WorkersFull { .. } => "; it waits until one of them ends",
        QueueError::Unavailable { .. } | QueueError::Unwritable { .. } => {
            "; workers continue with the units they hold and keep their records"
        }
        QueueError::Unfit { .. } => "; nothing is handed out until that is corrected",
        _ => "",
    };
    ServiceError::new(code, format!("{error}{advice}"))
}

/// Whether queue and coordinator disagree about the generation of a run's queue: it was lost, or rebuilt by another
/// coordinator.
pub(crate) fn is_out_of_step(error: &QueueError) -> bool {
    matches!(error, QueueError::RunGone { .. } | QueueError::StaleGeneration { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_may_be_tried_again() {
        let gone = QueueError::RunGone { run: "r".into() };
        assert!(is_out_of_step(&gone) && of_queue(&gone).code.is_transient());
        let full = of_queue(&QueueError::Unwritable { message: "OOM".into() });
        assert!(full.code == ErrorCode::Unavailable && full.message.contains("keep their records"), "{full}");
        let crowded = of_queue(&QueueError::WorkersFull { why: "10 are registered".into() });
        assert!(crowded.code.is_transient() && !crowded.message.contains("keep their records"), "{crowded}");
        let unfit = of_queue(&QueueError::Unfit { message: "maxmemory-policy is allkeys-lru".into() });
        assert!(!unfit.code.is_transient() && unfit.message.contains("allkeys-lru"));
    }
}

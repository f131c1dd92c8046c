//! Why a dialogue has no score.

use domain::FailureCause;

use super::{ConversionError, enumerated};
use crate::wire;

impl From<FailureCause> for wire::FailureCause {
    fn from(cause: FailureCause) -> Self {
        match cause {
            FailureCause::Connection => Self::Connection,
            FailureCause::Timeout => Self::Timeout,
            FailureCause::Overloaded => Self::Overloaded,
            FailureCause::RateLimited => Self::RateLimited,
            FailureCause::QuotaExhausted => Self::QuotaExhausted,
            FailureCause::Server => Self::Server,
            FailureCause::Aborted => Self::Aborted,
            FailureCause::Unauthorized => Self::Unauthorized,
            FailureCause::ModelNotFound => Self::ModelNotFound,
            FailureCause::WrongModel => Self::WrongModel,
            FailureCause::BadRequest => Self::BadRequest,
            FailureCause::ContextExceeded => Self::ContextExceeded,
            FailureCause::EvaluatorFailed => Self::EvaluatorFailed,
            FailureCause::Poisoned => Self::Poisoned,
            FailureCause::Cancelled => Self::Cancelled,
            FailureCause::JudgeUnparseable => Self::JudgeUnparseable,
        }
    }
}

pub(super) fn cause_from_wire(field: &'static str, number: i32) -> Result<FailureCause, ConversionError> {
    Ok(match enumerated(field, number)? {
        wire::FailureCause::Unspecified => return Err(ConversionError::Missing { field }),
        wire::FailureCause::Connection => FailureCause::Connection,
        wire::FailureCause::Timeout => FailureCause::Timeout,
        wire::FailureCause::Overloaded => FailureCause::Overloaded,
        wire::FailureCause::RateLimited => FailureCause::RateLimited,
        wire::FailureCause::QuotaExhausted => FailureCause::QuotaExhausted,
        wire::FailureCause::Server => FailureCause::Server,
        wire::FailureCause::Aborted => FailureCause::Aborted,
        wire::FailureCause::Unauthorized => FailureCause::Unauthorized,
        wire::FailureCause::ModelNotFound => FailureCause::ModelNotFound,
        wire::FailureCause::WrongModel => FailureCause::WrongModel,
        wire::FailureCause::BadRequest => FailureCause::BadRequest,
        wire::FailureCause::ContextExceeded => FailureCause::ContextExceeded,
        wire::FailureCause::EvaluatorFailed => FailureCause::EvaluatorFailed,
        wire::FailureCause::Poisoned => FailureCause::Poisoned,
        wire::FailureCause::Cancelled => FailureCause::Cancelled,
        wire::FailureCause::JudgeUnparseable => FailureCause::JudgeUnparseable,
    })
}

/// The number of a cause.
pub(super) fn cause_to_wire(cause: FailureCause) -> i32 {
    wire::FailureCause::from(cause).into()
}

/// The causes of a request to queue failed dialogues again.
pub(crate) fn causes_from_wire(numbers: &[i32]) -> Result<Vec<FailureCause>, ConversionError> {
    numbers.iter().map(|&number| cause_from_wire("RetryRequest.causes", number)).collect()
}

/// The numbers of causes.
pub(crate) fn causes_to_wire(causes: &[FailureCause]) -> Vec<i32> {
    causes.iter().copied().map(cause_to_wire).collect()
}

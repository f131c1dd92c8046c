//! Errors inside messages. Errors of whole calls are in [`status`](crate::status).

use domain::{ErrorCode, ServiceError};

use super::{ConversionError, enumerated};
use crate::wire;

impl From<ErrorCode> for wire::ErrorCode {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::Invalid => Self::Invalid,
            ErrorCode::NotFound => Self::NotFound,
            ErrorCode::Conflict => Self::Conflict,
            ErrorCode::Incompatible => Self::Incompatible,
            ErrorCode::Denied => Self::Denied,
            ErrorCode::Full => Self::Full,
            ErrorCode::Unavailable => Self::Unavailable,
            ErrorCode::Internal => Self::Internal,
        }
    }
}

/// Encodes why a batch was refused.
pub(crate) fn error_to_wire(error: ServiceError) -> wire::BatchError {
    wire::BatchError { code: wire::ErrorCode::from(error.code).into(), message: error.message }
}

/// Decodes why a batch was refused.
pub(crate) fn error_from_wire(error: wire::BatchError) -> Result<ServiceError, ConversionError> {
    let field = "BatchError.code";
    let code = match enumerated(field, error.code)? {
        wire::ErrorCode::Unspecified => return Err(ConversionError::Missing { field }),
        wire::ErrorCode::Invalid => ErrorCode::Invalid,
        wire::ErrorCode::NotFound => ErrorCode::NotFound,
        wire::ErrorCode::Conflict => ErrorCode::Conflict,
        wire::ErrorCode::Incompatible => ErrorCode::Incompatible,
        wire::ErrorCode::Denied => ErrorCode::Denied,
        wire::ErrorCode::Full => ErrorCode::Full,
        wire::ErrorCode::Unavailable => ErrorCode::Unavailable,
        wire::ErrorCode::Internal => ErrorCode::Internal,
    };
    Ok(ServiceError { code, message: error.message })
}

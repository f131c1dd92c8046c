//! Errors of calls: converts [`ErrorCode`] to gRPC status and back.
//!
//! The code travels by name in the metadata key [`KEY`], because gRPC's own codes are fewer and are also used by
//! everything between the two sides. The gRPC status is set to the nearest code, for tools that know only that.

use domain::text::followed_by_causes;
use domain::{ErrorCode, ServiceError};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::limits::ERROR_TEXT_BYTES;

/// Metadata key of an error's code.
const KEY: &str = "kgfleet-error-code";

/// The nearest gRPC code.
fn nearest(code: ErrorCode) -> Code {
    match code {
        ErrorCode::Invalid => Code::InvalidArgument,
        ErrorCode::NotFound => Code::NotFound,
        ErrorCode::Conflict | ErrorCode::Incompatible => Code::FailedPrecondition,
        ErrorCode::Denied => Code::PermissionDenied,
        ErrorCode::Full => Code::ResourceExhausted,
        ErrorCode::Unavailable => Code::Unavailable,
        ErrorCode::Internal => Code::Internal,
    }
}

/// Converts an error to a status. A message longer than [`ERROR_TEXT_BYTES`] is cut.
pub(crate) fn to_status(error: ServiceError) -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert(KEY, MetadataValue::from_static(error.code.as_str()));
    Status::with_metadata(nearest(error.code), shortened(error.message), metadata)
}

/// Converts the status of a failed call to `peer` to an error.
///
/// Without our own code, the status comes from something between the two sides. Only errors that a retry cannot fix
/// are distinguished; everything else is [`ErrorCode::Unavailable`], above all cancelled calls and timeouts, which
/// may have been carried out.
pub(crate) fn from_status(status: &Status, peer: &str) -> ServiceError {
    let name = status.metadata().get(KEY).and_then(|name| name.to_str().ok());
    let known = name.and_then(|name| ErrorCode::ALL.into_iter().find(|code| code.as_str() == name));
    if let Some(code) = known {
        return ServiceError::new(code, status.message());
    }
    let code = match status.code() {
        Code::Unimplemented => ErrorCode::Incompatible,
        Code::Unauthenticated | Code::PermissionDenied => ErrorCode::Denied,
        // tonic's errors for a message above the limit, or an invalid one.
        Code::OutOfRange | Code::InvalidArgument => ErrorCode::Invalid,
        _ => ErrorCode::Unavailable,
    };
    let advice = match code {
        ErrorCode::Incompatible => "; it does not know this call: it is older, or not a kgfleet coordinator",
        _ => "",
    };
    let words = match status.message() {
        "" => status.code().description(),
        message => message,
    };
    let told = followed_by_causes(words.to_owned(), status);
    let told = wrong_scheme(&told).unwrap_or(&told);
    ServiceError::new(code, format!("no answer from {peer}: {told}{advice}"))
}

/// Explains an error caused by TLS on only one of the two sides.
pub(crate) fn wrong_scheme(told: &str) -> Option<&'static str> {
    told.contains("InvalidContentType")
        .then_some("it does not speak TLS there: write http:// instead of https://, or name its TLS port")
}

pub(crate) fn shortened(mut message: String) -> String {
    if message.len() > ERROR_TEXT_BYTES {
        let mark = " …";
        let end = (0..=ERROR_TEXT_BYTES - mark.len()).rev().find(|&i| message.is_char_boundary(i));
        message.truncate(end.unwrap_or(0));
        message.push_str(mark);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back_as_itself() {
        for code in ErrorCode::ALL {
            let error = ServiceError::new(code, format!("run `a` is gone: ü\n{code:?}"));
            assert_eq!(from_status(&to_status(error.clone()), "there"), error);
        }
    }

    #[test]
    fn a_peer_that_speaks_no_tls_is_told_in_words() {
        let status = Status::unavailable("received corrupt message of type InvalidContentType");
        let error = from_status(&status, "https://there:7700").message;
        assert!(error.contains("https://there:7700") && error.contains("write http://"), "{error}");
        assert!(!error.contains("InvalidContentType"), "{error}");
    }

    #[test]
    fn codes_of_the_transport_become_codes_of_ours() {
        for (code, expected) in [
            (Code::Cancelled, ErrorCode::Unavailable),
            (Code::Unknown, ErrorCode::Unavailable),
            (Code::InvalidArgument, ErrorCode::Invalid),
            (Code::DeadlineExceeded, ErrorCode::Unavailable),
            (Code::NotFound, ErrorCode::Unavailable),
            (Code::AlreadyExists, ErrorCode::Unavailable),
            (Code::PermissionDenied, ErrorCode::Denied),
            (Code::ResourceExhausted, ErrorCode::Unavailable),
            (Code::FailedPrecondition, ErrorCode::Unavailable),
            (Code::Aborted, ErrorCode::Unavailable),
            (Code::OutOfRange, ErrorCode::Invalid),
            (Code::Unimplemented, ErrorCode::Incompatible),
            (Code::Internal, ErrorCode::Unavailable),
            (Code::Unavailable, ErrorCode::Unavailable),
            (Code::DataLoss, ErrorCode::Unavailable),
            (Code::Unauthenticated, ErrorCode::Denied),
        ] {
            assert_eq!(from_status(&Status::new(code, "x"), "there").code, expected, "{code:?}");
        }
    }

    #[test]
    fn a_code_of_the_future_is_unavailable() {
        let mut status = Status::new(Code::NotFound, "x");
        status.metadata_mut().insert(KEY, MetadataValue::from_static("haunted"));
        assert_eq!(from_status(&status, "there").code, ErrorCode::Unavailable);
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        let status = to_status(ServiceError::new(ErrorCode::Full, "ü".repeat(ERROR_TEXT_BYTES)));
        assert!(status.message().len() <= ERROR_TEXT_BYTES);
        assert!(status.message().ends_with("ü …"));
    }
}

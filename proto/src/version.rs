//! The version check: both sides send their wire version with every call and every answer.
//!
//! There is no negotiation. A cluster is updated as a whole, coordinators first; a mixture is refused with a message
//! that says which side to update. `proto/README.md` says when the number rises.

use domain::{ErrorCode, ServiceError};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status};

use crate::status::to_status;

/// The wire version of this code.
pub const WIRE_VERSION: u32 = 1;

/// The metadata key that carries it, as a decimal number.
pub const WIRE_VERSION_KEY: &str = "kgfleet-wire-version";

/// Adds our version.
fn announce(metadata: &mut MetadataMap) {
    metadata.insert(WIRE_VERSION_KEY, MetadataValue::from(WIRE_VERSION));
}

/// The peer's version.
fn announced(metadata: &MetadataMap) -> Option<u32> {
    metadata.get(WIRE_VERSION_KEY)?.to_str().ok()?.parse().ok()
}

/// Client interceptor: adds our version to a call.
pub(crate) fn announce_in_request(mut request: Request<()>) -> Result<Request<()>, Status> {
    announce(request.metadata_mut());
    Ok(request)
}

/// Server interceptor: refuses a caller of another version.
pub(crate) fn check_request(request: Request<()>) -> Result<Request<()>, Status> {
    match refusal_of_caller(announced(request.metadata())) {
        None => Ok(request),
        Some(message) => Err(to_status(ServiceError::new(ErrorCode::Incompatible, message))),
    }
}

/// Adds our version to an answer.
pub(crate) fn answer<T>(message: T) -> Response<T> {
    let mut response = Response::new(message);
    announce(response.metadata_mut());
    response
}

/// Checks the version in an answer of `peer`.
///
/// # Errors
/// [`ErrorCode::Incompatible`] for another version or none.
pub(crate) fn check_answer(metadata: &MetadataMap, peer: &str) -> Result<(), ServiceError> {
    let advice = match announced(metadata) {
        Some(WIRE_VERSION) => return Ok(()),
        None => format!("{peer} sends no wire version: it is not a kgfleet coordinator"),
        Some(theirs) => {
            let which = if theirs > WIRE_VERSION { "this side" } else { "the coordinator" };
            format!("{peer} speaks wire version {theirs}, this side speaks {WIRE_VERSION}: update {which}")
        }
    };
    Err(ServiceError::new(ErrorCode::Incompatible, advice))
}

/// Why a caller is refused, if so.
fn refusal_of_caller(theirs: Option<u32>) -> Option<String> {
    let ours = concat!("this coordinator (kgfleet ", env!("CARGO_PKG_VERSION"), ")");
    match theirs {
        Some(WIRE_VERSION) => None,
        None => Some(format!(
            "the caller sends no wire version in `{WIRE_VERSION_KEY}`; {ours} speaks {WIRE_VERSION}: update the caller"
        )),
        Some(theirs) => {
            let which = if theirs > WIRE_VERSION { "the coordinator" } else { "the caller" };
            Some(format!(
                "the caller speaks wire version {theirs}, {ours} speaks {WIRE_VERSION}: update {which}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_says_which_side_to_update() {
        assert_eq!(refusal_of_caller(Some(WIRE_VERSION)), None);
        let newer = refusal_of_caller(Some(WIRE_VERSION + 1)).unwrap();
        assert!(
            newer.contains(&format!("wire version {}", WIRE_VERSION + 1))
                && newer.ends_with("update the coordinator"),
            "{newer}"
        );
        let older = refusal_of_caller(Some(0)).unwrap();
        assert!(older.ends_with("update the caller"), "{older}");
        assert!(refusal_of_caller(None).unwrap().contains("sends no wire version"));
    }

    #[test]
    fn an_answer_of_another_version_is_refused() {
        let with = |version: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert(WIRE_VERSION_KEY, version.parse().unwrap());
            check_answer(&metadata, "there").map_err(|e| e.message)
        };
        assert_eq!(with(&WIRE_VERSION.to_string()), Ok(()));
        assert!(with(&(WIRE_VERSION + 1).to_string()).unwrap_err().ends_with("update this side"));
        assert!(with("0").unwrap_err().ends_with("update the coordinator"));
        assert!(with("one").unwrap_err().contains("no wire version"));
        assert_eq!(check_answer(&MetadataMap::new(), "there").unwrap_err().code, ErrorCode::Incompatible);
    }
}

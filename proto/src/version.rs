//! The handshake: both sides say with every call and every answer which version of the wire they speak.
//!
//! There is no negotiation. A cluster is updated as a whole, coordinators first, and a mixture is refused with words
//! that say which side to update. When the number rises is said in `proto/README.md`.

use domain::{ErrorCode, ServiceError};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status};

use crate::status::to_status;

/// The version of the wire that this code speaks.
pub const WIRE_VERSION: u32 = 1;

/// The metadata key that carries it, as a decimal number.
pub const WIRE_VERSION_KEY: &str = "kgfleet-wire-version";

/// Says our version.
fn announce(metadata: &mut MetadataMap) {
    metadata.insert(WIRE_VERSION_KEY, MetadataValue::from(WIRE_VERSION));
}

/// What the other side said.
fn announced(metadata: &MetadataMap) -> Option<u32> {
    metadata.get(WIRE_VERSION_KEY)?.to_str().ok()?.parse().ok()
}

/// Client interceptor: says our version with a call.
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

/// An answer that says our version.
pub(crate) fn answer<T>(message: T) -> Response<T> {
    let mut response = Response::new(message);
    announce(response.metadata_mut());
    response
}

/// What a client makes of the version in an answer of `peer`.
///
/// # Errors
/// [`ErrorCode::Incompatible`] for another version or none.
pub(crate) fn check_answer(metadata: &MetadataMap, peer: &str) -> Result<(), ServiceError> {
    let advice = match announced(metadata) {
        Some(WIRE_VERSION) => return Ok(()),
        None => format!("{peer} names no wire version: it is no kgfleet coordinator"),
        Some(theirs) => {
            let which = if theirs > WIRE_VERSION { "this side" } else { "the coordinator" };
            format!("{peer} speaks wire version {theirs}, this side speaks {WIRE_VERSION}: update {which}")
        }
    };
    Err(ServiceError::new(ErrorCode::Incompatible, advice))
}

/// Why a caller is refused, if it is.
fn refusal_of_caller(theirs: Option<u32>) -> Option<String> {
    let ours = concat!("this coordinator (kgfleet ", env!("CARGO_PKG_VERSION"), ")");
    match theirs {
        Some(WIRE_VERSION) => None,
        None => Some(format!(
            "the caller names no wire version in `{WIRE_VERSION_KEY}`; {ours} speaks {WIRE_VERSION}: update the caller"
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
        assert!(newer.contains("wire version 2") && newer.ends_with("update the coordinator"), "{newer}");
        let older = refusal_of_caller(Some(0)).unwrap();
        assert!(older.ends_with("update the caller"), "{older}");
        assert!(refusal_of_caller(None).unwrap().contains("names no wire version"));
    }

    #[test]
    fn an_answer_of_another_version_is_refused() {
        let with = |version: &'static str| {
            let mut metadata = MetadataMap::new();
            metadata.insert(WIRE_VERSION_KEY, MetadataValue::from_static(version));
            check_answer(&metadata, "there").map_err(|e| e.message)
        };
        assert_eq!(with("1"), Ok(()));
        assert!(with("2").unwrap_err().ends_with("update this side"));
        assert!(with("0").unwrap_err().ends_with("update the coordinator"));
        assert!(with("one").unwrap_err().contains("no wire version"));
        assert_eq!(check_answer(&MetadataMap::new(), "there").unwrap_err().code, ErrorCode::Incompatible);
    }
}

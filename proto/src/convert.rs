//! Converts between wire messages and `domain` types: one file per type.
//!
//! No message can cause a panic here. Conversions to the wire cannot fail, except for values that cannot be written
//! as JSON. Conversions from the wire check everything: required fields, enumeration numbers, ranges.

mod connector;
mod dead_letter;
mod delivery;
mod dialogue_key;
mod error_code;
mod export_item;
mod failure_cause;
mod grant;
mod lease_id;
mod offer;
mod orders;
mod parking;
mod rate_budget;
mod registration;
mod report;
mod run_command;
mod run_material;
mod run_phase;
mod run_view;
mod submission;
mod time;
mod worker_status;
mod worker_view;

use domain::{ErrorCode, ServiceError};

pub(crate) use delivery::{receipts_from_wire, receipts_to_wire};
pub(crate) use error_code::{error_from_wire, error_to_wire};
pub(crate) use failure_cause::{causes_from_wire, causes_to_wire};
pub(crate) use rate_budget::{wait_from_wire, wait_to_wire};
pub(crate) use submission::configuration_from_wire;

/// A message that breaks the rules of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// A required field is absent or empty.
    #[error("{field} is missing")]
    Missing {
        /// Message and field.
        field: &'static str,
    },
    /// An unknown enumeration number; the sender may be newer.
    #[error("{field} has the number {number}, which this version does not know")]
    Unknown {
        /// Message and field.
        field: &'static str,
        number: i32,
    },
    /// A number is out of range.
    #[error("{field} is {value}, expected {range}")]
    OutOfRange {
        /// Message and field.
        field: &'static str,
        /// The number.
        value: String,
        /// The valid range.
        range: &'static str,
    },
    /// A text is not UTF-8, or not the expected JSON.
    #[error("{field} is invalid: {reason}")]
    Unreadable {
        /// Message and field.
        field: &'static str,
        reason: String,
    },
}

/// A required text, such as a name.
pub(crate) fn required(field: &'static str, text: String) -> Result<String, ConversionError> {
    if text.is_empty() { Err(ConversionError::Missing { field }) } else { Ok(text) }
}

/// A required message.
fn present<T>(field: &'static str, value: Option<T>) -> Result<T, ConversionError> {
    value.ok_or(ConversionError::Missing { field })
}

/// The generated enumeration of a number. The caller must refuse 0.
fn enumerated<T: TryFrom<i32>>(field: &'static str, number: i32) -> Result<T, ConversionError> {
    T::try_from(number).map_err(|_| ConversionError::Unknown { field, number })
}

/// Converts all items, or returns the first error.
pub(crate) fn all<T, U: TryFrom<T, Error = ConversionError>>(
    items: Vec<T>,
) -> Result<Vec<U>, ConversionError> {
    items.into_iter().map(U::try_from).collect()
}

/// Converts all items; cannot fail.
pub(crate) fn every<T, U: From<T>>(items: Vec<T>) -> Vec<U> {
    items.into_iter().map(U::from).collect()
}

/// Decodes a text that travels as bytes.
fn text(field: &'static str, bytes: &[u8]) -> Result<std::sync::Arc<str>, ConversionError> {
    match std::str::from_utf8(bytes) {
        Ok("") => Err(ConversionError::Missing { field }),
        Ok(text) => Ok(text.into()),
        Err(e) => Err(ConversionError::Unreadable { field, reason: e.to_string() }),
    }
}

/// Encodes a text as bytes. Copied once: text and bytes of the two sides have different owners.
fn bytes(text: &str) -> prost::bytes::Bytes {
    prost::bytes::Bytes::copy_from_slice(text.as_bytes())
}

/// The error for an invalid request.
pub(crate) fn refuse_request(error: ConversionError) -> ServiceError {
    let code = match error {
        ConversionError::Unknown { .. } => ErrorCode::Incompatible,
        _ => ErrorCode::Invalid,
    };
    ServiceError::new(code, error.to_string())
}

/// The error for an invalid answer; a retry would bring it again.
pub(crate) fn refuse_answer(error: ConversionError) -> ServiceError {
    ServiceError::new(ErrorCode::Incompatible, format!("the coordinator's answer is invalid: {error}"))
}

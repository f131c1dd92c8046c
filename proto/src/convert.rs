//! Converts between wire messages and `domain` types. Messages that look the same on both sides are lists of fields in
//! [`messages`]; the others have a file each. [`on_wire`] says how each type of value travels. A field is added in the
//! `.proto` file and in one of these; `proto/README.md` says which changes are allowed.
//! No message can cause a panic here. Conversions to the wire cannot fail, except for values that cannot be written
//! as JSON. Conversions from the wire check everything: required fields, enumeration numbers, ranges.

#[macro_use]
mod on_wire;
mod delivery;
mod messages;
mod offer;
mod rate_budget;
mod reach;
mod report;
mod run_material;
mod time;

use domain::{ErrorCode, ServiceError};

pub(crate) use delivery::{receipts_from_wire, receipts_to_wire};
pub(crate) use rate_budget::{wait_from_wire, wait_to_wire};

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

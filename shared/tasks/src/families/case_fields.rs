//! Reading the fields of a case, with errors that name the field.

use serde_json::{Map, Value};

use crate::exercise::CaseError;

/// A text field.
pub(crate) fn text<'a>(data: &'a Map<String, Value>, field: &'static str) -> Result<&'a str, CaseError> {
    data.get(field).and_then(Value::as_str).ok_or(CaseError::Field { field, expected: "text" })
}

/// A list of texts.
pub(crate) fn texts(data: &Map<String, Value>, field: &'static str) -> Result<Vec<String>, CaseError> {
    let missing = CaseError::Field { field, expected: "list of texts" };
    let list = data.get(field).and_then(Value::as_array).ok_or_else(|| missing.clone())?;
    list.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(|| missing.clone())).collect()
}

/// A whole number; configurations write some of them as text.
pub(crate) fn count(data: &Map<String, Value>, field: &'static str) -> Result<usize, CaseError> {
    data.get(field)
        .and_then(|value| match value {
            Value::String(text) => text.parse().ok(),
            _ => value.as_u64().and_then(|number| usize::try_from(number).ok()),
        })
        .ok_or(CaseError::Field { field, expected: "whole number" })
}

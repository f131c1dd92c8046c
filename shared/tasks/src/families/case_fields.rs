//! Reads the fields of a case, with errors that name the field.

use rdf::{Graph, RdfFormat};
use serde_json::{Map, Value};

use crate::exercise::{CaseError, CaseInput};

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

/// A whole number; configurations contain some of them as text.
pub(crate) fn count(data: &Map<String, Value>, field: &'static str) -> Result<usize, CaseError> {
    data.get(field)
        .and_then(|value| match value {
            Value::String(text) => text.parse().ok(),
            _ => value.as_u64().and_then(|number| usize::try_from(number).ok()),
        })
        .ok_or(CaseError::Field { field, expected: "whole number" })
}

/// An optional whole number.
pub(crate) fn count_or(
    data: &Map<String, Value>,
    field: &'static str,
    default: usize,
) -> Result<usize, CaseError> {
    match data.get(field) {
        None | Some(Value::Null) => Ok(default),
        Some(_) => count(data, field),
    }
}

/// The words among which a judge chooses, and the score of each: the parameters `choices` and `worth`.
pub(crate) fn choices(parameters: &Map<String, Value>) -> Result<(Vec<String>, Vec<Value>), CaseError> {
    let choices = texts(parameters, "choices")?;
    let worth = parameters.get("worth").and_then(Value::as_array).cloned().unwrap_or_default();
    if worth.len() != choices.len() || choices.is_empty() || !worth.iter().all(Value::is_number) {
        let expected = "list of numbers, one for each of `choices`";
        return Err(CaseError::Field { field: "worth", expected });
    }
    Ok((choices, worth))
}

/// An optional text field.
pub(crate) fn text_or<'a>(
    data: &'a Map<String, Value>,
    field: &'static str,
    default: &'a str,
) -> Result<&'a str, CaseError> {
    if data.contains_key(field) { text(data, field) } else { Ok(default) }
}

/// An optional list of texts.
pub(crate) fn texts_or(
    data: &Map<String, Value>,
    field: &'static str,
    default: &[&str],
) -> Result<Vec<String>, CaseError> {
    if data.contains_key(field) {
        texts(data, field)
    } else {
        Ok(default.iter().map(|item| (*item).to_owned()).collect())
    }
}

/// A whole number from the case, or else from the parameters of the task.
pub(crate) fn count_or_parameter(
    input: &CaseInput<'_>,
    field: &'static str,
) -> Result<Option<usize>, CaseError> {
    let holder = [input.data, input.parameters].into_iter().find(|holder| holder.contains_key(field));
    holder.map(|holder| count(holder, field)).transpose()
}

/// The field `graphFormat` of the case, or else the parameter of that name, or else Turtle.
pub(crate) fn graph_format(input: &CaseInput<'_>) -> Result<RdfFormat, CaseError> {
    const FIELD: &str = "graphFormat";
    let holder = [input.data, input.parameters].into_iter().find(|holder| holder.contains_key(FIELD));
    let Some(holder) = holder else { return Ok(RdfFormat::Turtle) };
    let expected = "turtle, json-ld, xml or ntriples";
    text(holder, FIELD)?.parse().map_err(|_| CaseError::Field { field: FIELD, expected })
}

/// A Turtle document of the case.
pub(crate) fn turtle(document: &str, field: &'static str) -> Result<Graph, CaseError> {
    Graph::parse(document, RdfFormat::Turtle, None)
        .map_err(|error| CaseError::Reference { field, message: error.to_string() })
}

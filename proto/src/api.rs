//! The interface for people and tools: JSON over HTTP under [`BASE`], on the port of the workers' gRPC.
//!
//! Bodies are the types of [`domain::control`] as `--json` prints them, and the few of this file. A benchmark is watched as
//! server-sent events, records come as JSON lines, errors are problem details ([`problem`]). [`server`](crate::server) has the
//! table of routes, from which `docs/reference/api.yaml` is made; [`ApiClient`](crate::ApiClient) is the other end.

pub mod problem;

use std::sync::Arc;

use domain::control::ExportItem;
use domain::{ErrorCode, FailureCause, ServiceError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::problem::Problem;

/// What stands before every path. The version rises when a client of before could misread an answer.
pub const BASE: &str = "/api/v1";

/// Media type of a stream of records.
pub const JSON_LINES: &str = "application/jsonl";

/// A benchmark to start, or the changed configuration of one to extend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmissionBody {
    /// The benchmark configuration, as a file of it says in TOML.
    pub configuration: serde_json::Value,
    /// SHA-256 of a sealed pack that was sent before, in hexadecimal digits; the built-in pack without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<String>,
}

/// Which failed dialogues are asked again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryBody {
    /// Those that failed for one of these causes; all if there are none.
    #[serde(default)]
    pub causes: Vec<FailureCause>,
}

/// Which dead letters get another chance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequeueBody {
    /// The numbers of their units; all if there are none.
    #[serde(default)]
    pub units: Vec<u64>,
}

/// A number of dialogues or units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Count {
    pub count: u64,
}

/// Which program answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Version {
    /// Its version.
    pub kgfleet: String,
}

/// A line of an export: the documents of a judged benchmark, the manifest of a run, a record, or, as the last
/// line, why the export ends early.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ExportLine<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    documents: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    manifest: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    record: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Problem>,
}

impl ExportLine<'_> {
    /// An item or the error that ends an export, as a line with its end.
    pub(crate) fn write(item: &Result<ExportItem, ServiceError>) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = match item {
            Ok(ExportItem::Documents(json)) => {
                serde_json::to_vec(&ExportLine { documents: Some(raw(json)?), ..ExportLine::default() })
            }
            Ok(ExportItem::Manifest(json)) => {
                serde_json::to_vec(&ExportLine { manifest: Some(raw(json)?), ..ExportLine::default() })
            }
            Ok(ExportItem::Record(json)) => {
                serde_json::to_vec(&ExportLine { record: Some(raw(json)?), ..ExportLine::default() })
            }
            Err(error) => {
                serde_json::to_vec(&ExportLine { error: Some(error.into()), ..ExportLine::default() })
            }
        }?;
        // In JSON text a line break stands between tokens only.
        line.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        line.push(b'\n');
        Ok(line)
    }

    /// The item of a line.
    ///
    /// # Errors
    /// The error that the line tells; [`ErrorCode::Incompatible`] for a line that is none of these.
    pub(crate) fn read(line: &[u8]) -> Result<ExportItem, ServiceError> {
        let foreign =
            |why: String| ServiceError::new(ErrorCode::Incompatible, format!("a line of an export: {why}"));
        let line: ExportLine<'_> =
            serde_json::from_slice(line).map_err(|error| foreign(error.to_string()))?;
        let text = |json: &RawValue| -> Arc<str> { json.get().into() };
        match line {
            ExportLine { error: Some(problem), .. } => Err(problem.into()),
            ExportLine { documents: Some(json), .. } => Ok(ExportItem::Documents(text(json))),
            ExportLine { manifest: Some(json), .. } => Ok(ExportItem::Manifest(text(json))),
            ExportLine { record: Some(json), .. } => Ok(ExportItem::Record(text(json))),
            _ => Err(foreign("it holds no item".to_owned())),
        }
    }
}

fn raw(json: &str) -> Result<&RawValue, serde_json::Error> {
    serde_json::from_str(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_as_they_were_and_errors_as_errors() {
        let record = ExportItem::Record(r#"{"n":0.30000000000000004,"ü":[1e300]}"#.into());
        for item in
            [ExportItem::Documents("{}".into()), ExportItem::Manifest(r#"{"a": 1.50}"#.into()), record]
        {
            let line = ExportLine::write(&Ok(item.clone())).unwrap();
            assert_eq!(ExportLine::read(&line), Ok(item));
        }
        let pretty = ExportLine::write(&Ok(ExportItem::Manifest("{\n\"a\": \"\\n\"\n}".into()))).unwrap();
        assert_eq!(pretty.iter().filter(|byte| **byte == b'\n').count(), 1, "it is one line");
        let error = ServiceError::new(ErrorCode::Unavailable, "the disk is gone");
        assert_eq!(ExportLine::read(&ExportLine::write(&Err(error.clone())).unwrap()), Err(error));
        for foreign in [&b"<html>"[..], b"{}", b"{\"other\":1}", b""] {
            assert_eq!(ExportLine::read(foreign).unwrap_err().code, ErrorCode::Incompatible);
        }
    }
}

//! The manifest of a run: what was planned, with which versions, from which material.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use domain::text::hex;
use domain::{About, RunId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::files::{self, Doing, IoError};

/// The manifest version that is written, and the newest that is read.
pub const MANIFEST_VERSION: u32 = 1;

/// Written once when a run starts, and never changed: whoever extends the run writes another [revision](Self::revision).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunManifest {
    /// [`MANIFEST_VERSION`] of the writer.
    pub version: u32,
    pub run: RunId,
    /// From 1. Each extension of the run writes the next one; the newest counts.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub revision: u32,
    /// Time of planning.
    pub created_at: Timestamp,
    /// Version of kgfleet that planned it.
    pub kgfleet: String,
    /// The resolved configuration: defaults filled in, keys of models left out.
    pub configuration: Value,
    /// [`hash`] of the configuration.
    pub configuration_hash: String,
    /// Hash of the plan, hexadecimal SHA-256: equal plans have equal dialogues.
    pub plan_hash: String,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// The task packs in use.
    pub packs: Vec<PackUse>,
    /// Number of dialogues planned.
    pub planned_dialogues: u64,
    /// Whether texts of this run may be stored or exported only encrypted or redacted.
    #[serde(default)]
    pub protected: bool,
    /// The key of the record log, [wrapped](crate::run_key); `None` if the log is not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_key: Option<String>,
    /// Whom it judges, where its models are judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// Fields of other versions, kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first(revision: &u32) -> bool {
    *revision == first()
}

/// A pack that a run uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackUse {
    pub name: String,
    /// Hash of its manifest, hexadecimal SHA-256.
    pub hash: String,
}

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The operating system reported an error.
    #[error(transparent)]
    Io(#[from] IoError),
    /// Not the JSON of a manifest.
    #[error("{}: not a manifest: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// Written by a later kgfleet.
    #[error("{}: manifest version {found} is newer than {MANIFEST_VERSION}, the newest this kgfleet reads; use the kgfleet that wrote it", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u64,
    },
}

impl RunManifest {
    /// Reads a manifest; unknown fields are kept.
    pub fn read(path: &Path) -> Result<Self, ManifestError> {
        Self::from_json(path, &fs::read(path).doing("read", path)?)
    }

    /// Parses a manifest; `path` appears in errors.
    ///
    /// # Errors
    /// Not a manifest, or one of a later version.
    pub fn from_json(path: &Path, text: &[u8]) -> Result<Self, ManifestError> {
        let malformed = |source| ManifestError::Malformed { path: path.to_owned(), source };
        let value: Value = serde_json::from_slice(text).map_err(malformed)?;
        // The version first, because the fields of a newer one are unknown.
        if let Some(found) = value.get("version").and_then(Value::as_u64)
            && found > u64::from(MANIFEST_VERSION)
        {
            return Err(ManifestError::Newer { path: path.to_owned(), found });
        }
        serde_json::from_value(value).map_err(malformed)
    }

    /// Serialises the manifest.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Writes the manifest; a crash leaves either the old or the new one.
    pub fn write(&self, path: &Path) -> Result<(), ManifestError> {
        let text =
            self.to_json().map_err(|source| ManifestError::Malformed { path: path.to_owned(), source })?;
        let written = files::replace(path, |mut file| {
            file.write_all(&text)?;
            Ok(file)
        });
        Ok(written.doing("write", path)?)
    }
}

/// Hexadecimal SHA-256 of a JSON value whose objects are sorted by key: the order in which a configuration
/// lists its keys does not change it.
pub fn hash(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(key, _)| *key);
                Value::Object(fields.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
            leaf => leaf.clone(),
        }
    }
    hex(Sha256::digest(sorted(value).to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing;

    #[test]
    fn a_manifest_reads_back_with_fields_it_does_not_know() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manifest.json");
        let mut manifest = testing::manifest("r1");
        manifest.other.insert("mood".into(), json!("good"));
        manifest.write(&path).unwrap();
        assert_eq!(RunManifest::read(&path).unwrap(), manifest);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_newer_manifest_is_refused_by_name_and_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manifest.json");
        fs::write(&path, r#"{"version": 2, "everything": "else"}"#).unwrap();
        let error = RunManifest::read(&path).unwrap_err().to_string();
        assert!(error.contains("manifest.json: manifest version 2 is newer"), "{error}");
    }

    #[test]
    fn the_hash_sees_values_and_not_the_order_of_keys() {
        assert_eq!(
            hash(&json!({"a": [1, {"x": 1, "y": 2}], "b": 2})),
            hash(&json!({"b": 2, "a": [1, {"y": 2, "x": 1}]}))
        );
        assert_ne!(hash(&json!([1, 2])), hash(&json!([2, 1])));
    }
}

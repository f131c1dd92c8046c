//! The manifest of a run: configuration, seed, packs and versions by which it was planned.

use std::fs;
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

/// Written once when a run starts, and never changed: extending the run writes another [revision](Self::revision).
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
    /// [`hash`] of the configuration without the names of keys, where an archive [left them out](Self::without_key_names).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyless_hash: Option<String>,
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
    /// Which model's answers the run judges; `None` if it is not a run of a judge.
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
    /// There are records, and no manifest says of what.
    #[error("{}: the manifest of a run with records is missing", path.display())]
    Missing {
        /// Where it was.
        path: PathBuf,
    },
    /// Not the JSON of a manifest.
    #[error("{}: not a manifest: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// It was changed after the run was planned.
    #[error("{}: the manifest of run {run} {alteration}", path.display())]
    Altered {
        /// The file.
        path: PathBuf,
        run: RunId,
        alteration: Alteration,
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

/// Which part of a manifest was changed after the run was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// The configuration, or its hash.
    Configuration,
    /// The seed beside the configuration.
    Seed,
    /// The pack that it names, by hash.
    Pack,
    /// The plan that configuration and pack give, or its hash.
    Plan,
    /// The number of dialogues.
    Dialogues,
}

impl Alteration {
    /// The message for people.
    pub fn what(self) -> &'static str {
        match self {
            Self::Configuration => "its configuration is not the one that its hash was made of",
            Self::Seed => "its seed is not the one of its configuration",
            Self::Pack => "its pack is not the one that its plan was made of",
            Self::Plan => "its plan is not what its configuration, seed and pack give",
            Self::Dialogues => "its number of dialogues is not the one of its plan",
        }
    }
}

impl std::fmt::Display for Alteration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = self.what();
        write!(
            f,
            "was altered after it was planned: {what}; put back the manifest from a backup or from where the run was copied. \
             `kgfleet verify` checks the rest of the run, `kgfleet rm --force` removes it"
        )
    }
}

impl RunManifest {
    /// Reads a manifest; unknown fields are kept.
    ///
    /// # Errors
    /// As for [`from_json`](Self::from_json).
    pub fn read(path: &Path) -> Result<Self, ManifestError> {
        Self::from_json(path, &fs::read(path).doing("read", path)?)
    }

    /// Parses a manifest; `path` appears in errors.
    ///
    /// # Errors
    /// Not a manifest, one of a later version, or an altered one.
    pub fn from_json(path: &Path, text: &[u8]) -> Result<Self, ManifestError> {
        let manifest = Self::parse(path, text)?;
        match manifest.alteration() {
            None => Ok(manifest),
            Some(alteration) => {
                Err(ManifestError::Altered { path: path.to_owned(), run: manifest.run, alteration })
            }
        }
    }

    /// The first changed part that the manifest's own hashes show. Changes of the plan need the pack to be found, so
    /// they are not looked for here.
    pub fn alteration(&self) -> Option<Alteration> {
        if !self.is_as_hashed() {
            return Some(Alteration::Configuration);
        }
        let configured = self.configuration.get("seed").and_then(Value::as_u64);
        configured.is_some_and(|configured| configured != self.seed).then_some(Alteration::Seed)
    }

    /// Parses a manifest that may be altered, to look at it; `path` appears in errors.
    ///
    /// # Errors
    /// Not a manifest, or one of a later version.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, ManifestError> {
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

    /// Whether the configuration has the hash stored with it: that of the whole, or that without the names of keys if a
    /// archive left them out. All other code asks this function.
    pub fn is_as_hashed(&self) -> bool {
        let found = hash(&self.configuration);
        found == self.configuration_hash
            || (self.keyless_hash.as_ref() == Some(&found)
                && without_key_names(&self.configuration).is_none())
    }

    /// The manifest without the names of keys, for other people: which variables and files hold keys is private. It
    /// keeps the hash of the whole configuration, by which the run is cited. `None` if it names no key.
    pub fn without_key_names(&self) -> Option<Self> {
        let configuration = without_key_names(&self.configuration)?;
        Some(Self { keyless_hash: Some(hash(&configuration)), configuration, ..self.clone() })
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
        Ok(files::replace_shared(path, &text).doing("write", path)?)
    }
}

/// The fields of a model that say where its key is.
const KEY_NAMES: [&str; 4] = ["key", "key_env", "key_file", "key_command"];

/// A configuration without the names of keys of its models and judges; `None` if it has none.
pub fn without_key_names(configuration: &Value) -> Option<Value> {
    let mut configuration = configuration.clone();
    let mut removed = false;
    let mut strip = |model: &mut Value| {
        if let Some(fields) = model.as_object_mut() {
            for name in KEY_NAMES {
                removed |= fields.remove(name).is_some();
            }
        }
    };
    if let Some(models) = configuration.get_mut("models").and_then(Value::as_array_mut) {
        models.iter_mut().for_each(&mut strip);
    }
    if let Some(judges) = configuration.get_mut("judges").and_then(Value::as_object_mut) {
        judges.values_mut().for_each(&mut strip);
    }
    removed.then_some(configuration)
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
    fn an_altered_manifest_is_refused() {
        let path = Path::new("manifest.json");
        let read = |change: fn(&mut Value)| {
            let configuration = json!({"seed": 7, "models": [{"label": "a"}, {"label": "b"}]});
            let configuration_hash = hash(&configuration);
            let manifest = RunManifest { configuration, configuration_hash, ..testing::manifest("r1") };
            let mut json = serde_json::to_value(&manifest).unwrap();
            change(&mut json);
            match RunManifest::from_json(path, json.to_string().as_bytes()) {
                Ok(_) => None,
                Err(ManifestError::Altered { alteration, .. }) => Some(alteration),
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(read(|_| {}), None);
        assert_eq!(read(|m| m["seed"] = 8.into()), Some(Alteration::Seed));
        assert_eq!(read(|m| m["configuration"]["seed"] = 8.into()), Some(Alteration::Configuration));
        assert_eq!(
            read(|m| m["configuration"]["models"][0]["label"] = "c".into()),
            Some(Alteration::Configuration)
        );
        assert_eq!(read(|m| m["configuration_hash"] = "0".into()), Some(Alteration::Configuration));
    }

    #[test]
    fn without_the_names_of_keys_a_manifest_is_known_for_what_it_was() {
        let of = |configuration: Value| RunManifest {
            configuration_hash: hash(&configuration),
            configuration,
            ..testing::manifest("r1")
        };
        let whole = of(json!({
            "models": [{"label": "a", "key_env": "A"}, {"label": "b", "key_file": "/b"}],
            "judges": {"grader": {"label": "g", "key": "house"}},
            "tasks": [{"label": "t", "parameters": {"key": "kept"}}],
        }));
        let keyless = whole.without_key_names().unwrap();
        let text = serde_json::to_string(&keyless).unwrap();
        assert!(
            !text.contains("key_") && !text.contains("house") && text.contains("\"key\":\"kept\""),
            "{text}"
        );
        assert_eq!(keyless.configuration_hash, whole.configuration_hash);
        assert!(whole.is_as_hashed() && keyless.is_as_hashed());
        assert!(keyless.without_key_names().is_none(), "nothing more to leave out");

        let altered = |manifest: &RunManifest, model: Value| {
            let mut altered = manifest.clone();
            altered.configuration["models"][0] = model;
            altered
        };
        for manifest in [&whole, &keyless] {
            assert!(!altered(manifest, json!({"label": "c"})).is_as_hashed());
        }
        // Another key is another manifest, and none that was left out.
        let keyed = altered(&keyless, json!({"label": "a", "key_env": "OTHER"}));
        assert!(!keyed.is_as_hashed());
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

//! The keys of a worker, and the addresses that it may contact.
//!
//! Secrets belong to the machine that uses them. A configuration from a coordinator names a key; a file beside the
//! worker says which secret that is, and where it may be sent:
//!
//! ```toml
//! [claude]
//! connector = "anthropic"
//! env = "ANTHROPIC_API_KEY"           # or file = "/run/secrets/claude"
//!
//! [house]
//! connector = "openai-compatible"
//! file = "/run/secrets/house"
//! endpoints = ["https://llm.example.org/v1"]   # default: the provider's own address
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use domain::provider::UsualKey;
use domain::reach::{Denied, KeyReach, Place, REACH_MAX, Reach};
use domain::{Connector, ModelSpec, PROVIDERS};
use models::Secret;
use serde::Deserialize;

/// Maximum size of a key file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The keys of a worker, and the addresses that it may contact.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    reach: Reach,
    /// With the files of those that are in files, which may change.
    secrets: BTreeMap<String, (Secret, Option<PathBuf>)>,
    lacks: Vec<String>,
}

/// A key file is unusable.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// It cannot be read.
    #[error("the keys in {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is invalid.
    #[error("the keys in {}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        message: String,
    },
    /// An allowed address is invalid.
    #[error("--allow-endpoint: {0}")]
    Place(String),
}

/// A key in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    connector: Connector,
    env: Option<String>,
    file: Option<PathBuf>,
    #[serde(default)]
    endpoints: Vec<String>,
}

impl Keyring {
    /// Reads the keys of a file, or takes the default ones without a file, and the allowed addresses. A key whose
    /// secret is missing is reported and not an error, because others can be used.
    ///
    /// # Errors
    /// The file or an address is invalid.
    pub fn read(file: Option<&Path>, allowed: &[String]) -> Result<Self, KeyringError> {
        let mut ring = match file {
            Some(path) => Self::of_file(path)?,
            None => Self::usual(),
        };
        let places = allowed.iter().map(|text| Place::parse(text));
        ring.reach.places = places.collect::<Result<_, _>>().map_err(KeyringError::Place)?;
        if ring.reach.places.len() > REACH_MAX {
            return Err(KeyringError::Place(format!("{} addresses are too many", ring.reach.places.len())));
        }
        Ok(ring)
    }

    fn usual() -> Self {
        let mut ring = Self::default();
        for provider in &PROVIDERS {
            // A key of one address is not that of its connector.
            let Some(UsualKey { variable, only_at: None }) = provider.usual_key else { continue };
            let connector = provider.connector;
            let key = KeyReach { name: connector.as_str().to_owned(), connector, places: Vec::new() };
            // Nobody asked for it.
            if let Ok(secret) = Secret::from_env(variable) {
                ring.add(key, secret, None);
            }
        }
        ring
    }

    fn of_file(path: &Path) -> Result<Self, KeyringError> {
        let io = |source| KeyringError::Io { path: path.to_owned(), source };
        let wrong = |message: String| KeyringError::Content { path: path.to_owned(), message };
        let text = service_kit::named_files::read_text(path, FILE_BYTES_MAX).map_err(io)?;
        // In the order of the file, which is the order of preference if a configuration names none.
        let entries: toml::Table =
            toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
        if entries.len() > REACH_MAX {
            return Err(wrong(format!("{} keys are too many; {REACH_MAX} may be", entries.len())));
        }
        let mut ring = Self::default();
        for (name, entry) in entries {
            let of_key = |message: &dyn std::fmt::Display| wrong(format!("key `{name}`: {message}"));
            let entry: Entry = entry.try_into().map_err(|error: toml::de::Error| of_key(&error.message()))?;
            let places = entry.endpoints.iter().map(|text| Place::parse(text)).collect::<Result<Vec<_>, _>>();
            let places = places.map_err(|error| of_key(&error))?;
            if entry.connector.own_endpoint().is_none() && places.is_empty() {
                return Err(of_key(
                    &"this connector has no default address; list in `endpoints` where the key may be sent",
                ));
            }
            let secret = match (&entry.env, &entry.file) {
                (Some(variable), None) => Secret::from_env(variable),
                (None, Some(file)) => Secret::from_file(file),
                _ => return Err(of_key(&"expected either `env` or `file`")),
            };
            match secret {
                Ok(secret) => {
                    ring.add(KeyReach { name, connector: entry.connector, places }, secret, entry.file);
                }
                Err(error) => ring.lacks.push(format!("{name}: {error}")),
            }
        }
        Ok(ring)
    }

    fn add(&mut self, key: KeyReach, secret: Secret, file: Option<PathBuf>) {
        self.secrets.insert(key.name.clone(), (secret, file));
        self.reach.keys.push(key);
    }

    /// What the worker may contact, without the secrets.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Keys in the file whose secret is missing, each with the reason.
    pub fn lacks(&self) -> &[String] {
        &self.lacks
    }

    /// The secret for a model, at a discovered server with this address or else where its configuration says.
    ///
    /// # Errors
    /// This worker may not ask it.
    pub fn grant(&self, spec: &ModelSpec, found: Option<&str>) -> Result<Option<Secret>, Denied> {
        let key = self.reach.permits(spec, found)?;
        Ok(key.and_then(|key| self.secrets.get(&key.name)).map(|(secret, _)| secret.clone()))
    }

    /// What is in the file of the key for a model now; `None` if it is in none. Blocks.
    pub fn read_again(&self, spec: &ModelSpec, found: Option<&str>) -> Option<Secret> {
        let key = self.reach.permits(spec, found).ok()??;
        let (_, file) = self.secrets.get(&key.name)?;
        Secret::from_file(file.as_ref()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Keyring, KeyringError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.toml");
        let secret = dir.path().join("secret");
        std::fs::write(&secret, "sk-1234\n").unwrap();
        std::fs::write(&path, text.replace("SECRET", secret.to_str().unwrap())).unwrap();
        Keyring::read(Some(&path), &["http://127.0.0.1:8000/v1".to_owned()])
    }

    #[test]
    fn keys_are_read_and_those_that_lack_are_told() {
        let text = "[b]\nconnector = 'anthropic'\nfile = 'SECRET'\n[a]\nconnector = 'openai-compatible'\n\
                    env = 'KGFLEET_NOT_SET'\nendpoints = ['https://h/v1']\n";
        let ring = read(text).unwrap();
        assert_eq!(ring.reach().keys.len(), 1);
        assert!(
            ring.lacks()[0].contains("a: ") && ring.lacks()[0].contains("KGFLEET_NOT_SET"),
            "{:?}",
            ring.lacks()
        );
        let spec = |json| serde_json::from_value::<ModelSpec>(json).unwrap();
        let model = spec(serde_json::json!({"label": "m", "connector": "anthropic", "key": "b"}));
        assert_eq!(ring.grant(&model, None).unwrap().unwrap().expose(), "sk-1234");
        let elsewhere = ModelSpec { endpoint: Some("http://127.0.0.1:8000/v1".into()), ..model };
        assert!(ring.grant(&elsewhere, None).is_err(), "allowed for asking, not for this key");
        assert!(!format!("{ring:?}").contains("sk-1234"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_place() {
        for (text, culprit) in [
            ("[a]\nconnector = 'anthropic'\n", "either `env` or `file`"),
            ("[a]\nconnector = 'openai-compatible'\nenv = 'X'\n", "list in `endpoints`"),
            ("[a]\nconnector = 'anthropic'\nenv = 'X'\nendpoints = ['ftp://h']\n", "ftp://h"),
            (
                "[a]\nconnector = 'anthropic'\nenv = 'X'\nendpoints = ['http://169.254.169.254']\n",
                "never contacted",
            ),
            ("[a]\nconnector = 'parrot'\nenv = 'X'\n", "parrot"),
            ("[a]\nconnector = 'anthropic'\nkey = 'sk'\n", "key"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("keys.toml") && error.contains(culprit), "{error}");
        }
    }
}

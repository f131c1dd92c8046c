//! What a pack declares about itself.
//!
//! People write the [`Header`] as `pack.toml`. Sealing adds the list of entries with their hashes: that is the
//! [`Manifest`], the first entry of the container. Its SHA-256 is the pack's hash, the one name under which results
//! refer to exactly these exercises.

use std::fmt;

use domain::TaskLabel;
use domain::text::hex;
use rdf::RdfFormat;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tasks::{Compat, EvaluationLimits};

use crate::error::PackError;
use crate::parts::Parts;

/// Version of the container and manifest that this crate writes. It reads all versions up to this one.
pub const FORMAT_VERSION: u64 = 1;

/// Path of the header among a pack's parts.
pub const HEADER_PATH: &str = "pack.toml";

/// Path of the manifest in the container.
pub const MANIFEST_PATH: &str = "manifest.json";

/// What a person says about a pack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// Short name, such as `kgfleet-core`.
    pub name: String,
    /// Version of the content, raised with every change of an exercise.
    pub version: String,
    /// Licence of the content, as an SPDX expression.
    pub licence: String,
    /// What it holds, in a sentence or two.
    pub description: String,
    /// Where the content comes from.
    pub provenance: String,
    /// A random text that stands nowhere else: a model that can say it was trained on this pack.
    pub canary: String,
    /// Whether texts of this pack may only leave the machine encrypted or redacted. True for packs imported from
    /// published results, whose authors ask for it.
    #[serde(default)]
    pub protected: bool,
    /// Defects of the published run to reproduce: off for own exercises.
    #[serde(default)]
    pub compat: Compat,
    #[serde(default)]
    pub limits: EvaluationLimits,
    /// The tasks in their order, in groups.
    pub groups: Vec<Group>,
    /// Graphs that cases refer to by name.
    #[serde(default)]
    pub graphs: Vec<GraphSpec>,
}

/// Tasks that are chosen together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Group {
    /// Such as `core` or `extra`.
    pub name: String,
    /// Whether a run that names no tasks takes these.
    pub default: bool,
    /// Labels in order. The task of a label is the entry `tasks/LABEL.toml` or `tasks/LABEL.json`.
    pub tasks: Vec<TaskLabel>,
}

/// A graph that cases refer to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GraphSpec {
    /// The name that cases use.
    pub name: String,
    /// Where it comes from.
    pub source: GraphSource,
}

/// Where a graph comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GraphSource {
    /// An entry of the pack.
    Stored {
        /// Its path.
        file: String,
        /// Its syntax, by any name that [`RdfFormat`] reads.
        format: String,
    },
    /// Made by code of this crate.
    Generated {
        /// Which code.
        generator: Generator,
        seed: u64,
        /// Number of triples it must give.
        triples: usize,
        /// SHA-256 of the Turtle document it must give, in lower-case hexadecimal.
        sha256: String,
    },
}

/// Code that makes graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// [`crate::bestiary`].
    Bestiary,
}

impl GraphSource {
    /// The syntax of the graph's document.
    ///
    /// # Errors
    /// The format is none of the four.
    pub fn format(&self) -> Result<RdfFormat, String> {
        match self {
            Self::Stored { format, .. } => {
                format.parse().map_err(|e: rdf::format::UnknownFormat| e.to_string())
            }
            Self::Generated { generator: Generator::Bestiary, .. } => Ok(RdfFormat::Turtle),
        }
    }
}

/// One file of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// Its path in the pack.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content, in lower-case hexadecimal.
    pub sha256: String,
}

/// Everything a pack declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// See [`FORMAT_VERSION`].
    pub format_version: u64,
    /// What the author says.
    pub header: Header,
    /// All entries but the manifest itself, sorted by path.
    pub entries: Vec<Entry>,
}

/// SHA-256 of a manifest, in lower-case hexadecimal. It does not change when the same parts are sealed again,
/// unlike the sealed file, whose encryption is randomised.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PackHash(String);

impl PackHash {
    /// All 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 12 digits: enough for tables.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl fmt::Display for PackHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Manifest {
    /// The manifest of these parts.
    ///
    /// # Errors
    /// The header is missing or not valid.
    pub fn of(parts: &Parts) -> Result<Self, PackError> {
        let header = parts.header()?;
        let entries = parts
            .iter()
            .map(|(path, content)| Entry {
                path: path.to_owned(),
                bytes: content.len() as u64,
                sha256: sha256_hex(content),
            })
            .collect();
        Ok(Self { format_version: FORMAT_VERSION, header, entries })
    }

    /// The bytes that are stored and hashed. Field order is fixed, so equal parts give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Reads a stored manifest. The version is looked at first and leniently, so that a pack of a newer version is
    /// refused for that reason and not for a field that this version does not know.
    ///
    /// # Errors
    /// A newer format version, or not a manifest.
    pub fn from_bytes(pack: &str, bytes: &[u8]) -> Result<Self, PackError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            format_version: u64,
        }
        let invalid = |error: serde_json::Error| PackError::Invalid {
            pack: pack.to_owned(),
            entry: MANIFEST_PATH.to_owned(),
            message: error.to_string(),
        };
        let Version { format_version } = serde_json::from_slice(bytes).map_err(invalid)?;
        if format_version > FORMAT_VERSION {
            return Err(PackError::Newer {
                pack: pack.to_owned(),
                found: format_version,
                known: FORMAT_VERSION,
            });
        }
        serde_json::from_slice(bytes).map_err(invalid)
    }

    /// The pack's hash.
    pub fn hash(&self) -> PackHash {
        PackHash(sha256_hex(&self.to_bytes()))
    }
}

/// SHA-256 in lower-case hexadecimal.
pub(crate) fn sha256_hex(content: &[u8]) -> String {
    hex(Sha256::digest(content))
}

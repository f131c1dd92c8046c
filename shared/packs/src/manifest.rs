//! What a pack declares about itself.
//!
//! Authors write the [`Header`]. Sealing adds the list of entries with their hashes; the result is the
//! [`Manifest`], the first entry of the container. Its SHA-256 is the pack's hash, by which results refer to exactly
//! these exercises.

use std::fmt;

use domain::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::PackError;
use crate::header::{Header, MANIFEST_PATH};
use crate::parts::Parts;

pub use crate::header::HEADER_PATH;

/// Version of the container and manifest that this crate writes. It reads all versions up to this one.
pub const FORMAT_VERSION: u64 = 1;

/// One file of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PackFile {
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
    /// The author's description.
    pub header: Header,
    /// All entries but the manifest itself, sorted by path.
    pub entries: Vec<PackFile>,
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
            .map(|(path, content)| PackFile {
                path: path.to_owned(),
                bytes: content.len() as u64,
                sha256: sha256_hex(content),
            })
            .collect();
        Ok(Self { format_version: FORMAT_VERSION, header, entries })
    }

    /// Serialises the manifest for storage and hashing. Field order is fixed, so equal parts give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Parses a stored manifest. The version is parsed first and leniently, so that a pack of a newer version is
    /// refused for that reason and not for an unknown field.
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

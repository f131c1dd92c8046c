//! The keys that seal and open packs: X25519 identities in the text form of the `age` tool.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use age::secrecy::ExposeSecret;

use crate::error::PackError;

/// The published identity, in the form of an `age` identity file.
const PUBLISHED: &str = include_str!("../../../task-data/identity.txt");

/// A key pair that seals and opens packs.
#[derive(Clone)]
pub struct Identity(age::x25519::Identity);

impl Identity {
    /// The identity of the project's own packs. It is in the repository and is not a secret.
    pub fn published() -> Result<Self, IdentityError> {
        PUBLISHED.parse()
    }

    /// A fresh identity, for packs of your own.
    pub fn generate() -> Self {
        Self(age::x25519::Identity::generate())
    }

    /// Reads an identity file as `age-keygen` writes it.
    ///
    /// # Errors
    /// The file cannot be read, or holds no X25519 identity.
    pub fn from_file(path: &Path) -> Result<Self, PackError> {
        let shown = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|source| PackError::Io { path: shown.clone(), source })?;
        text.parse().map_err(|error: IdentityError| PackError::Invalid {
            pack: shown.clone(),
            entry: shown,
            message: error.to_string(),
        })
    }

    /// The text of an identity file with this identity.
    pub fn to_file_text(&self) -> String {
        format!("# public key: {}\n{}\n", self.0.to_public(), self.0.to_string().expose_secret())
    }

    pub(crate) fn key(&self) -> &age::x25519::Identity {
        &self.0
    }
}

/// Shows only the public half, so that a private identity never appears in a log.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.0.to_public())
    }
}

/// Why a text has no usable identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// Only comments and blank lines.
    #[error("no identity found (a line `AGE-SECRET-KEY-1…` was expected)")]
    None,
    /// The line is not an X25519 identity.
    #[error("not an X25519 identity: {0}")]
    Malformed(&'static str),
}

impl FromStr for Identity {
    type Err = IdentityError;

    /// Takes the first line that is neither blank nor a comment.
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let line = text
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .ok_or(IdentityError::None)?;
        line.parse().map(Self).map_err(IdentityError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_files_read_back_and_debug_output_keeps_the_secret() {
        let identity = Identity::generate();
        let text = identity.to_file_text();
        let again: Identity = text.parse().unwrap();
        assert_eq!(again.to_file_text(), text);
        assert!(!format!("{identity:?}").contains("SECRET"));
    }

    #[test]
    fn the_published_identity_is_usable_and_nonsense_is_not() {
        Identity::published().unwrap();
        assert_eq!("# only a comment\n".parse::<Identity>().unwrap_err(), IdentityError::None);
        assert!(matches!("AGE-SECRET-KEY-1X".parse::<Identity>(), Err(IdentityError::Malformed(_))));
    }
}

//! The fleet that the user has logged in to, with the credentials for it: where verbs act that are not told where.
//!
//! It is kept in a file that only its owner can read, because it may hold a token: `KGFLEET_LOGIN`, or `kgfleet/login.toml` in the
//! user's folder of configurations.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::kit::exit_code::{Exit, usage};
use crate::kit::whole_file::{self, OWN};

/// Environment variable with the path of the file.
const FILE_ENV: &str = "KGFLEET_LOGIN";

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 16;

/// A fleet, and who its user is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FleetLogin {
    /// Addresses of its coordinators.
    pub fleet: Vec<String>,
    /// The token itself, where it came from no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// A file with the token, which is read again when the token is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Certificate of the authority, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Whether the token may be sent without TLS to another machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insecure_token: bool,
}

impl FleetLogin {
    /// What the user of this process has logged in to; `None` for this machine.
    ///
    /// # Errors
    /// The file cannot be read, or is none of a login.
    pub fn of_user() -> anyhow::Result<Option<Self>> {
        file().map_or(Ok(None), |path| Self::read(&path))
    }

    fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        let text = match service_kit::named_files::read_text(path, FILE_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read {}", path.display())).map_err(Exit::usage)?,
        };
        // The message of the parser would show the line, which may hold a token.
        let login: Self = toml::from_str(&text).map_err(|error: toml::de::Error| {
            let line =
                error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            usage!("{}:{line}: not a file of `kgfleet fleet login`: {}", path.display(), error.message())
        })?;
        Ok((!login.fleet.is_empty()).then_some(login))
    }

    /// Keeps it in place of what is kept; returns where.
    ///
    /// # Errors
    /// There is no place for it, or it cannot be written.
    pub fn keep(&self) -> anyhow::Result<PathBuf> {
        let path = file().ok_or_else(|| {
            usage!("nobody knows where to keep a login: set HOME, or {FILE_ENV} to the path of a file")
        })?;
        self.write(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn write(&self, path: &Path) -> anyhow::Result<()> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        Ok(whole_file::replace(path, toml::to_string(self)?.as_bytes(), OWN)?)
    }

    /// Forgets what is kept.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn forget() -> anyhow::Result<()> {
        let Some(path) = file() else { return Ok(()) };
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.with_context(|| format!("cannot remove {}", path.display())),
        }
    }
}

fn file() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from);
    named(FILE_ENV).or_else(|| {
        let whole = |name| named(name).filter(|path| path.is_absolute());
        let folder = whole("XDG_CONFIG_HOME").or_else(|| Some(whole("HOME")?.join(".config")))?;
        Some(folder.join("kgfleet/login.toml"))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_belongs_to_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kgfleet/login.toml");
        assert_eq!(FleetLogin::read(&path).unwrap(), None, "a missing file has none");
        let lab = FleetLogin {
            fleet: vec!["https://kg.example.org:7700".to_owned()],
            token: Some("secret".to_owned()),
            ca: Some("/etc/kg/ca.pem".into()),
            ..FleetLogin::default()
        };
        for _ in 0..2 {
            lab.write(&path).unwrap();
            assert_eq!(FleetLogin::read(&path).unwrap().as_ref(), Some(&lab));
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
            let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
            assert_eq!(files.count(), 1, "nothing lies beside it");
        }
    }

    #[test]
    fn a_damaged_file_is_named_with_its_line_and_without_its_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("login.toml");
        std::fs::write(&path, "fleet = []\ntoken = 'secret' x\n").unwrap();
        let error = FleetLogin::read(&path).err().unwrap().to_string();
        assert!(error.contains("login.toml:2") && !error.contains("secret"), "{error}");
    }
}

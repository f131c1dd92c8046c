//! Contexts: the fleets that a user has logged in to, each with its coordinators and credentials.
//!
//! They are kept in one file, which only its owner can read, because it may hold tokens: `KGFLEET_CONTEXTS`, or
//! `kgfleet/contexts.toml` in the user's folder of configurations.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap_complete::engine::ArgValueCompleter;
use serde::{Deserialize, Serialize};

use crate::kit::completion::completer;
use crate::kit::exit_code::{Exit, usage};

/// The name that stands for this machine where a context is asked for.
pub const HERE: &str = "here";

/// Environment variable with the path of the file.
const FILE_ENV: &str = "KGFLEET_CONTEXTS";

/// Longest name of a context, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Longest file, in bytes: thousands of contexts.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A fleet, and who its user is there.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FleetContext {
    /// Addresses of coordinators of the same queue.
    pub coordinators: Vec<String>,
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

/// All contexts of a user.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Contexts {
    /// Where verbs act that are not told where; this machine if it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[serde(rename = "context")]
    pub known: BTreeMap<String, FleetContext>,
}

impl Contexts {
    /// The contexts of the user of this process; none where the file is missing.
    ///
    /// # Errors
    /// The file cannot be read, or is none of contexts.
    pub fn of_user() -> anyhow::Result<Self> {
        let Some(path) = file() else { return Ok(Self::default()) };
        Self::read(&path)
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = match named_files::read_text(path, FILE_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text.with_context(|| format!("cannot read {}", path.display())).map_err(Exit::usage)?,
        };
        // The message of the parser would show the line, which may hold a token.
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            let line =
                error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            usage!("{}:{line}: not a file of contexts: {}", path.display(), error.message())
        })
    }

    /// Writes them in place of the file of the user.
    ///
    /// # Errors
    /// There is no place for it, or it cannot be written.
    pub fn write(&self) -> anyhow::Result<PathBuf> {
        let path = file().ok_or_else(|| {
            usage!("nobody knows where to keep contexts: set HOME, or {FILE_ENV} to the path of a file")
        })?;
        self.write_to(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn write_to(&self, path: &Path) -> anyhow::Result<()> {
        let text = toml::to_string(self)?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        // Whoever reads it meanwhile gets the one of before or the new one.
        let beside = path.with_extension(format!("{}.tmp", std::process::id()));
        let written =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()?;
                std::fs::rename(&beside, path)
            });
        if written.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        Ok(written?)
    }

    /// A context by its name.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn get(&self, name: &str) -> anyhow::Result<&FleetContext> {
        self.known.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.known.keys().map(String::as_str).collect();
            match names.is_empty() {
                true => usage!("there is no context `{name}`: `kgfleet login URL` makes one"),
                false => usage!("there is no context `{name}`; there are: {}", names.join(", ")),
            }
        })
    }

    /// The context in which verbs act that are not told where; `None` for this machine.
    ///
    /// # Errors
    /// The file names one that it does not have.
    pub fn current(&self) -> anyhow::Result<Option<(&str, &FleetContext)>> {
        let Some(name) = self.current.as_deref().filter(|name| *name != HERE) else { return Ok(None) };
        Ok(Some((name, self.get(name)?)))
    }
}

/// Whether a text can be the name of a context.
///
/// # Errors
/// Why not.
pub fn expect_name(name: &str) -> anyhow::Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
        return Err(usage!(
            "a context is named by at most {NAME_BYTES_MAX} letters, digits, `-`, `_`, `.` and `:`; say --name NAME"
        ));
    }
    if name == HERE {
        return Err(usage!("`{HERE}` stands for this machine; say --name NAME"));
    }
    Ok(())
}

/// Completes the name of a context.
pub fn completed() -> ArgValueCompleter {
    completer(|_| Contexts::of_user().unwrap_or_default().known.into_keys().collect())
}

/// The same where this machine may be named too.
pub fn completed_or_here() -> ArgValueCompleter {
    completer(|_| {
        let known = Contexts::of_user().unwrap_or_default().known;
        known.into_keys().chain([HERE.to_owned()]).collect()
    })
}

fn file() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from);
    named(FILE_ENV).or_else(|| {
        let whole = |name| named(name).filter(|path| path.is_absolute());
        let folder = whole("XDG_CONFIG_HOME").or_else(|| Some(whole("HOME")?.join(".config")))?;
        Some(folder.join("kgfleet/contexts.toml"))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn lab() -> Contexts {
        let lab = FleetContext {
            coordinators: vec!["https://kg.example.org:7700".to_owned()],
            token: Some("secret".to_owned()),
            ca: Some("/etc/kg/ca.pem".into()),
            ..FleetContext::default()
        };
        Contexts { current: Some("lab".to_owned()), known: [("lab".to_owned(), lab)].into() }
    }

    #[test]
    fn what_is_written_is_read_again_and_belongs_to_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kgfleet/contexts.toml");
        assert!(Contexts::read(&path).unwrap() == Contexts::default(), "a missing file has none");
        for _ in 0..2 {
            lab().write_to(&path).unwrap();
            assert!(Contexts::read(&path).unwrap() == lab());
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
            assert_eq!(
                std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
                1,
                "nothing lies beside it"
            );
        }
    }

    #[test]
    fn a_damaged_file_is_named_with_its_line_and_without_its_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contexts.toml");
        std::fs::write(&path, "current = 'lab'\n[context.lab]\ntoken = 'secret' x\n").unwrap();
        let error = Contexts::read(&path).err().unwrap().to_string();
        assert!(error.contains("contexts.toml:3") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn an_unknown_context_is_answered_with_those_there_are() {
        assert!(lab().get("lap").err().unwrap().to_string().contains("there are: lab"));
        assert!(Contexts::default().get("lab").err().unwrap().to_string().contains("kgfleet login"));
        let gone = Contexts { current: Some("gone".to_owned()), ..lab() };
        assert!(gone.current().is_err());
        let here = Contexts { current: Some(HERE.to_owned()), ..lab() };
        assert!(here.current().unwrap().is_none());
    }

    #[test]
    fn a_name_is_short_and_plain() {
        assert!(expect_name("kg.example.org:7700").is_ok());
        for bad in ["", "here", "a b", "a/b", &"x".repeat(65)] {
            assert!(expect_name(bad).is_err(), "{bad}");
        }
    }
}

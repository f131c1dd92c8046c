//! Looks at Secrets as a pod mounts them, a folder for each with a file for each key, and says which keys are missing. No
//! cluster is asked, and no content is read or printed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::kit::exit_code::ExitCode;

/// Check that Secrets have the keys that a release reads.
///
/// Reads Secrets as a pod mounts them: in --mounted, a folder for each with a file for each key. Prints a line for each
/// Secret, with the keys that are missing or empty. The chart runs this in `helm test`. Exit codes: 0 all are there; 1 a
/// key is missing; 2 the options cannot be used; 3 the folder cannot be read.
#[derive(Debug, clap::Args)]
pub(super) struct SecretsCheck {
    /// A Secret with its keys, as in `bench-auth=worker.token,operator.token`; one without keys must have some.
    #[arg(value_name = "SECRET=KEY,...", required = true, value_parser = wanted)]
    secrets: Vec<WantedSecret>,
    /// Folder with a folder for each Secret.
    #[arg(long, value_name = "DIR", default_value = "/etc/kgfleet/secrets")]
    mounted: PathBuf,
}

/// A Secret and the keys that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WantedSecret {
    name: String,
    keys: Vec<String>,
}

/// Reads `SECRET=KEY,KEY`.
fn wanted(text: &str) -> Result<WantedSecret, String> {
    let (name, keys) = text.split_once('=').ok_or("expected SECRET=KEY,KEY")?;
    let keys: Vec<String> = keys.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect();
    let all = keys.iter().map(String::as_str).chain([name]);
    let wrong = all.filter(|name| !is_plain(name)).map(str::to_owned).next();
    match wrong {
        Some(other) => Err(format!("`{other}` is no name of a Secret, and no key of one")),
        None => Ok(WantedSecret { name: name.to_owned(), keys }),
    }
}

/// Whether a name leads to nothing but a file of that name.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && !name.starts_with("..") && name != "." && name.bytes().all(plain)
}

/// Runs the command.
pub(super) fn run(check: &SecretsCheck) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut is_whole = true;
    for secret in &check.secrets {
        let lacks = secret.lacks(&check.mounted)?;
        is_whole &= lacks.is_empty();
        let name = &secret.name;
        match (lacks.as_slice(), secret.keys.as_slice()) {
            ([], []) => writeln!(out, "{name}: has keys")?,
            ([], keys) => writeln!(out, "{name}: has {}", keys.join(", "))?,
            (_, []) => writeln!(out, "{name}: MISSING, or without keys")?,
            (lacks, keys) if lacks.len() == keys.len() => {
                writeln!(out, "{name}: MISSING, or without {}", lacks.join(", "))?;
            }
            (lacks, _) => writeln!(out, "{name}: LACKS {}", lacks.join(", "))?,
        }
    }
    Ok(if is_whole { ExitCode::Success } else { ExitCode::Unsatisfied })
}

impl WantedSecret {
    /// The keys that are missing or empty; of one that may have any, `a key`.
    fn lacks(&self, mounted: &Path) -> anyhow::Result<Vec<String>> {
        let folder = mounted.join(&self.name);
        if self.keys.is_empty() {
            let has_some = folder.is_dir() && names(&folder)?.iter().any(|name| is_plain(name));
            return Ok(if has_some { Vec::new() } else { vec!["a key".to_owned()] });
        }
        let is_there =
            |key: &str| fs::metadata(folder.join(key)).is_ok_and(|file| file.is_file() && file.len() > 0);
        Ok(self.keys.iter().filter(|key| !is_there(key)).cloned().collect())
    }
}

/// Names in a folder.
fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.collect::<io::Result<Vec<String>>>().with_context(|| format!("cannot list {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        let secret = |name: &str, keys: &[&str]| WantedSecret {
            name: name.to_owned(),
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        };
        assert_eq!(wanted("b-auth=tokens.toml,a_b"), Ok(secret("b-auth", &["tokens.toml", "a_b"])));
        assert_eq!(wanted("s3="), Ok(secret("s3", &[])));
        for bad in ["b-auth", "=key", "a/b=key", "..=key", ".=key", "b=../../etc/passwd", "b=..data"] {
            assert!(wanted(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_that_is_missing_or_empty_is_named() {
        let mounted = tempfile::tempdir().unwrap();
        let lacks = |text: &str| wanted(text).unwrap().lacks(mounted.path()).unwrap();
        for (file, content) in [("auth/worker.token", "t"), ("auth/operator.token", ""), ("s3/..data", "x")] {
            let path = mounted.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        assert_eq!(lacks("auth=worker.token"), [""; 0]);
        assert_eq!(lacks("auth=worker.token,operator.token,tokens.toml"), ["operator.token", "tokens.toml"]);
        assert_eq!(lacks("none=url"), ["url"]);
        assert_eq!(lacks("auth="), [""; 0]);
        assert_eq!((lacks("s3="), lacks("none=")), (vec!["a key".to_owned()], vec!["a key".to_owned()]));
    }
}
